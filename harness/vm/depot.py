"""A web server that offers releases over HTTPS, with ranges, as a site's own would."""

from __future__ import annotations

import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_PIECE = 65_536


class Depot:
    """A context manager. ``files`` by name; what a test sets takes effect with the next request.

    ``stops_after``: bytes of a body after which the connection is cut, once for each number. ``requests`` are the
    ``Range`` headers as they came, empty without one.
    """

    def __init__(self, host: str, tls: ssl.SSLContext) -> None:
        self.files: dict[str, Path] = {}
        self.status = 0
        self.stops_after: list[int] = []
        self.requests: list[str] = []
        depot = self

        class Handler(_Handler):
            owner = depot

        self._server = _Server((host, 0), Handler)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://{host}:{self._server.server_port}"

    def __enter__(self) -> Depot:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def offer(self, path: Path) -> str:
        """The file's address from now on."""
        self.files[path.name] = path
        return f"{self.url}/{path.name}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A device whose power is cut breaks its connection."""


class _Handler(BaseHTTPRequestHandler):
    owner: Depot
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.owner.requests.append(asked)
        path = self.owner.files.get(self.path.removeprefix("/"))
        if self.owner.status or path is None:
            self.send_error(self.owner.status or 404)
            return
        size = path.stat().st_size
        found = re.fullmatch(r"bytes=(\d+)-", asked)
        start = int(found[1]) if found else 0
        self.send_response(206 if found else 200)
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(size - start))
        if found:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        self._send(path, start)

    def _send(self, path: Path, start: int) -> None:
        left = self.owner.stops_after.pop(0) if self.owner.stops_after else None
        with path.open("rb") as file:
            file.seek(start)
            while piece := file.read(_PIECE if left is None else min(_PIECE, left)):
                self.wfile.write(piece)
                left = None if left is None else left - len(piece)
        if left is not None:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Tests look at what the device says."""
