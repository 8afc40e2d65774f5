"""A web server with one file, and with whatever may go wrong with it, an answer at a time."""

from __future__ import annotations

import hashlib
import re
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_RANGE = re.compile(r"bytes=(\d+)-")


@dataclass(frozen=True)
class Asked:
    """What a request was for."""

    path: str
    range: str
    authorization: str


@dataclass
class FileServer:
    """Each request takes the next of ``answers``; when there is none, it is answered as web servers do: with ranges,
    and with an ETag that is the content's digest. With a ``context`` by HTTPS.
    """

    content: bytes = b""
    context: ssl.SSLContext | None = None
    answers: deque[Answer] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> FileServer:
        server = self

        class Handler(Exchange):
            owner = server

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        if self.context is not None:
            self._server.socket = self.context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://{self.address}"


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    owner: FileServer

    def do_GET(self) -> None:
        asked = Asked(self.path, self.headers.get("Range", ""), self.headers.get("Authorization", ""))
        self.owner.asked.append(asked)
        answer = self.owner.answers.popleft() if self.owner.answers else file
        answer(self)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


Answer = Callable[[Exchange], None]


def file(exchange: Exchange, sent: int | None = None) -> None:
    """The file, or the rest of it; ``sent``: how many bytes of what is promised really come."""
    content = exchange.owner.content
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    wanted = _RANGE.fullmatch(exchange.headers.get("Range", ""))
    start = int(wanted[1]) if wanted and exchange.headers.get("If-Range", tag) == tag else 0
    if start and start >= len(content):
        exchange.start(416, {"Content-Range": f"bytes */{len(content)}", "Content-Length": "0"})
        return
    headers = {"ETag": tag, "Content-Length": str(len(content) - start), "Accept-Ranges": "bytes"}
    if start:
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
    exchange.start(206 if start else 200, headers)
    exchange.wfile.write(content[start:][:sent])


def cut_off(after: int) -> Answer:
    """The connection breaks after so many bytes of the body."""
    return lambda exchange: file(exchange, after)


def a_part(size: int) -> Answer:
    """Of the range that was asked for no more than so many bytes, as a server may."""

    def answer(exchange: Exchange) -> None:
        content = exchange.owner.content
        wanted = _RANGE.fullmatch(exchange.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        part = content[first:][:size]
        span = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        exchange.start(206, {"Content-Length": str(len(part)), "Content-Range": span})
        exchange.wfile.write(part)

    return answer


def stall(after: int, until: threading.Event) -> Answer:
    """So many bytes of the body, then silence."""

    def answer(exchange: Exchange) -> None:
        file(exchange, after)
        exchange.wfile.flush()
        until.wait(60)

    return answer


def without_ranges(exchange: Exchange) -> None:
    """The whole file, whatever was asked for, from a server that names no version of it."""
    exchange.start(200, {"Content-Length": str(len(exchange.owner.content))})
    exchange.wfile.write(exchange.owner.content)


def endless(exchange: Exchange) -> None:
    """A body that has no length and no end."""
    exchange.start(200, {})
    try:
        while True:
            exchange.wfile.write(bytes(65_536))
    except OSError:
        pass


def status(code: int, body: bytes = b"", **headers: str) -> Answer:
    """Names of headers with ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(exchange: Exchange) -> None:
        exchange.start(code, {"Content-Length": str(len(body)), **named})
        exchange.wfile.write(body)

    return answer


def redirect(place: str) -> Answer:
    return status(302, Location=place)
