"""TLS in front of a server on this machine, as the proxy of an installation has it; bytes go through as they are."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading


class TlsFront:
    """Listens on ``host`` and passes everything on to ``port`` of the loopback; a context manager."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext) -> None:
        self._port = port
        self._tls = tls
        self._listener = socket.create_server((host, 0))
        self.address = f"{host}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> TlsFront:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            self._tls.wrap_socket(plain, server_side=True) as client,
            socket.create_connection(("127.0.0.1", self._port)) as server,
        ):
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
