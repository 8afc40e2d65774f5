"""Devices that wait, in a process of their own: what ``bench.waiting`` measures must not share its interpreter.

Reads credentials and addresses from standard input; writes a line when all know their state, and the moments of
:class:`Told` when the last one was told of a change and has polled it.
"""

from __future__ import annotations

import asyncio
import random
import sys

import msgspec

from harness.waiters import Waiters, signed

#: As the agent's ``server.wait_spread_seconds``.
SPREAD_SECONDS = 1.0
POLLS_AT_ONCE = 20


class Crowd(msgspec.Struct):
    """Who waits, and where."""

    web: str
    waiting: str
    credentials: list[str]


class Told(msgspec.Struct):
    """When the last device was told, and when the last one had its new state, by the monotonic clock."""

    told_at: float
    polled_at: float


async def play(crowd: Crowd, waiters: Waiters) -> Told:
    """Poll, say so, wait, be told, poll."""
    few = asyncio.Semaphore(POLLS_AT_ONCE)
    etags = await asyncio.gather(*(_first_poll(crowd, waiters, each, few) for each in crowd.credentials))
    print("ready", flush=True)
    pairs = zip(crowd.credentials, etags, strict=True)
    moments = await asyncio.gather(*(_be_told(crowd, waiters, *pair) for pair in pairs))
    return Told(told_at=max(told for told, _ in moments), polled_at=max(polled for _, polled in moments))


async def _first_poll(crowd: Crowd, waiters: Waiters, credential: str, few: asyncio.Semaphore) -> str:
    async with few:
        reply = await waiters.fetch(f"{crowd.web}/api/agent/v1/desired", signed(credential))
    return reply.headers["etag"]


async def _be_told(crowd: Crowd, waiters: Waiters, credential: str, etag: str) -> tuple[float, float]:
    while (word := await waiters.fetch(f"{crowd.waiting}/api/agent/v1/wait", signed(credential, etag))).status == 304:
        pass
    if word.status != 204:
        raise RuntimeError(f"waiting was answered with {word.status}: {word.body[:200]!r}")
    await asyncio.sleep(random.uniform(0, SPREAD_SECONDS))  # noqa: S311  (spreads load, hides nothing)
    reply = await waiters.fetch(f"{crowd.web}/api/agent/v1/desired", signed(credential, etag))
    if reply.status != 200:
        raise RuntimeError(f"the poll after word was answered with {reply.status}")
    return word.at, reply.at


def main() -> None:
    """One crowd, once."""
    crowd = msgspec.json.decode(sys.stdin.buffer.readline(), type=Crowd)
    with Waiters() as waiters:
        print(msgspec.json.encode(waiters.run(play(crowd, waiters))).decode(), flush=True)


if __name__ == "__main__":
    main()
