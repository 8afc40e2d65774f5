"""A small HTTP proxy, as sites have one: forwards plain requests and, with CONNECT, whole connections."""

from __future__ import annotations

import base64
import http.client
import select
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class ForwardProxy:
    """``seen`` are method and target of each request. With ``login`` (``user:password``) it lets nobody else in.

    ``hosts`` are names that only the proxy knows: ``{"registry.example:443": "127.0.0.1:5000"}``.
    """

    login: str = ""
    hosts: dict[str, str] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)

    def __enter__(self) -> ForwardProxy:
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
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
        return f"http://{self.login}@{self.address}" if self.login else f"http://{self.address}"


class _Handler(BaseHTTPRequestHandler):
    owner: ForwardProxy

    def do_CONNECT(self) -> None:
        if not self._is_let_in():
            return
        host, _, port = self.owner.hosts.get(self.path, self.path).rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as upstream:
            self.send_response(200)
            self.end_headers()
            _relay(self.connection, upstream)
        self.close_connection = True

    def do_GET(self) -> None:
        if not self._is_let_in():
            return
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        upstream = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=10)
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
        upstream.request(self.command, target.path, body, headers)
        answer = upstream.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET  # noqa: N815  (the name that the server looks for)

    def _is_let_in(self) -> bool:
        self.owner.seen.append((self.command, self.path))
        wanted = f"Basic {base64.b64encode(self.owner.login.encode()).decode()}"
        if self.owner.login and self.headers.get("Proxy-Authorization") != wanted:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", "Basic")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        return True

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


def _relay(one: socket.socket, other: socket.socket) -> None:
    """Both ways, until one side has nothing more to say."""
    peers = {one: other, other: one}
    while True:
        ready, _, _ = select.select(list(peers), [], [], 10)
        if not ready:
            return
        for side in ready:
            data = side.recv(65_536)
            if not data:
                return
            peers[side].sendall(data)
