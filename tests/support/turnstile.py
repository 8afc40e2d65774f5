"""A relay for HTTP calls that cuts the caller's life short at a chosen one.

It stands between an agent and Podman, or between an agent and its control plane, and needs nothing of either: each
call is given a name, and when the call that a test waits for comes by, the caller is killed before it is forwarded,
while it is worked on, or after it was done and before the answer is passed on.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler
from pathlib import Path

_HOP = {"connection", "content-length", "keep-alive", "server", "date", "transfer-encoding"}
UPSTREAM_SECONDS = 60.0


class Side(StrEnum):
    """When the caller dies: the call never arrives, its caller hangs up meanwhile, or nobody hears the answer."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


class Turnstile:
    """Relays every call; :meth:`arm` says at which one ``kill`` is called, once."""

    def __init__(self, connect: Callable[[], http.client.HTTPConnection], name: Callable[[str, str, bytes], str]):
        self._connect = connect
        self._name = name
        self._lock = threading.Lock()
        self._armed: tuple[str, Side, Callable[[], None]] | None = None
        self.struck = threading.Event()
        self.learn: Callable[[str, bytes], None] = lambda name, answer: None

    def arm(self, call: str, side: Side, kill: Callable[[], None]) -> None:
        """At the next call of this name ``kill`` is called; :attr:`struck` is set when it was."""
        self.struck.clear()
        self._armed = (call, side, kill)

    def disarm(self) -> None:
        self._armed = None

    def relay(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        """The answer to one call.

        Raises:
            ConnectionAbortedError: when the caller was killed for it and there is nobody to answer.
        """
        name = self._name(method, path, body)
        side, kill = self._take(name)
        if side is Side.BEFORE:
            self._strike(kill)
        upstream = self._connect()
        try:
            upstream.request(method, path, body, headers)
            if side is Side.DURING:
                self._strike(kill)
            answer = upstream.getresponse()
            data = answer.read()
        finally:
            upstream.close()
        self.learn(name, data)
        if side is Side.AFTER:
            self._strike(kill)
        return answer.status, {k: v for k, v in answer.getheaders() if k.lower() not in _HOP}, data

    def _take(self, name: str) -> tuple[Side | None, Callable[[], None]]:
        with self._lock:
            if self._armed is None or self._armed[0] != name:
                return None, lambda: None
            (_, side, kill), self._armed = self._armed, None
            return side, kill

    def _strike(self, kill: Callable[[], None]) -> None:
        kill()
        self.struck.set()
        raise ConnectionAbortedError


class _Handler(BaseHTTPRequestHandler):
    turnstile: Turnstile
    protocol_version = "HTTP/1.1"

    def _relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {key: value for key, value in self.headers.items() if key.lower() not in _HOP}
        status, answered, data = self.turnstile.relay(self.command, self.path, headers, body)
        self.send_response_only(status)
        for key, value in answered.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _relay  # noqa: N815  (what the base class calls)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


class _Quiet(socketserver.ThreadingMixIn):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Callers are killed here; broken connections are the point of it."""


class _UnixServer(_Quiet, socketserver.UnixStreamServer):
    pass


class _TcpServer(_Quiet, socketserver.TCPServer):
    allow_reuse_address = True


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=UPSTREAM_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@contextmanager
def before_podman(podman_socket: Path, own_socket: Path) -> Iterator[Turnstile]:
    """Serves ``own_socket`` as Podman's; calls are named ``create api``, ``start api`` and so on."""
    names: dict[str, str] = {}

    def name(method: str, path: str, body: bytes) -> str:
        found = re.search(r"/libpod/containers/(\w+)(?:/(\w+))?(?:\?.*)?$", path)
        if found is None or (method == "GET"):
            return ""
        if found[1] == "create":
            return f"create {json.loads(body)['name']}"
        verb = "remove" if method == "DELETE" else found[2]
        return f"{verb} {names.get(found[1], found[1])}"

    turnstile = Turnstile(lambda: _UnixConnection(podman_socket), name)

    def learn(called: str, answer: bytes) -> None:
        verb, _, container = called.partition(" ")
        if verb == "create":
            names[json.loads(answer).get("Id", "")] = container

    turnstile.learn = learn
    with _serving(_UnixServer(str(own_socket), _handler(turnstile))):
        yield turnstile


@contextmanager
def before_control_plane(url: str) -> Iterator[tuple[Turnstile, str]]:
    """Calls are named ``poll``, ``document`` and ``report``; also the address that serves them."""
    host, _, port = url.rpartition("/")[2].partition(":")
    names = {"desired": "poll", "documents": "document", "report": "report"}

    def name(method: str, path: str, body: bytes) -> str:
        return names.get(path.removeprefix("/api/agent/v1/").partition("/")[0], "")

    turnstile = Turnstile(lambda: http.client.HTTPConnection(host, int(port), timeout=UPSTREAM_SECONDS), name)
    server = _TcpServer(("127.0.0.1", 0), _handler(turnstile))
    with _serving(server):
        yield turnstile, f"http://127.0.0.1:{server.server_address[1]}"


def _handler(turnstile: Turnstile) -> type[_Handler]:
    return type("Handler", (_Handler,), {"turnstile": turnstile})


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
