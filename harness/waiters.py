"""Many devices that wait at once, for tests and benchmarks: one thread, one event loop, a connection each."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

Result = TypeVar("Result")

CONNECT_SECONDS = 10
#: The server's queue of connections that it has not accepted yet is short.
CONNECT_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, and when by the monotonic clock. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at: float


class Waiters:
    """A context manager; requests that are still held are hung up at its end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="waiters", daemon=True)
        self._doorway = asyncio.Semaphore(CONNECT_AT_ONCE)

    def __enter__(self) -> Waiters:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def get(self, url: str, headers: Mapping[str, str] = MappingProxyType({})) -> Future[Reply]:
        """Ask on a connection of its own; cancelling the answer hangs up."""
        return asyncio.run_coroutine_threadsafe(self.fetch(url, headers), self._loop)

    def hold(self, address: str, credential: str, etag: str, *, seconds: int = 50) -> Future[Reply]:
        """Wait as a device does that polled ``etag``."""
        return self.get(f"{address}/api/agent/v1/wait?seconds={seconds}", signed(credential, etag))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something in the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def fetch(self, url: str, headers: Mapping[str, str]) -> Reply:
        """As :meth:`get`, from within the loop."""
        parts = urlsplit(url)
        async with self._doorway:
            connecting = asyncio.open_connection(parts.hostname, parts.port)
            reader, writer = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        try:
            lines = [f"GET {parts.path}?{parts.query} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            head = await reader.readuntil(b"\r\n\r\n")
            return _reply(head, await reader.read())
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def signed(credential: str, etag: str = "") -> dict[str, str]:
    """The headers of a device's request."""
    return {"Authorization": f"Bearer {credential}"} | ({"If-None-Match": etag} if etag else {})


def _reply(head: bytes, body: bytes) -> Reply:
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Reply(int(first.split()[1]), headers, body, time.monotonic())


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
