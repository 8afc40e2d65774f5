"""``fleet-updater run``: the socket in the main thread, the work on the open attempt in another."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from pathlib import Path

from agent.updater.server import Server
from agent.updater.updater import Updater

#: Whatever the worker does then may be cut off: the journal knows.
STOP_SECONDS = 5.0

logger = logging.getLogger("agent.updater")


class Service:
    """Runs until :meth:`stop` or until the work fails in a way that only a new process may solve."""

    def __init__(self, updater: Updater, server: Server) -> None:
        self._updater = updater
        self._server = server
        self._bell = threading.Event()
        self._is_stopping = False
        self._has_failed = False
        updater.on_change = self._bell.set

    def run(self) -> bool:
        """Whether it was stopped on purpose."""
        worker = threading.Thread(target=self._work, name="work", daemon=True)
        worker.start()
        try:
            self._server.serve()
        finally:
            self.stop()
        worker.join(STOP_SECONDS)
        return not self._has_failed

    def stop(self) -> None:
        self._is_stopping = True
        self._bell.set()
        self._server.stop()

    def stop_on_signals(self) -> None:
        """A handler may interrupt the main thread while it rings the bell; ending the server takes no lock."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._server.stop())

    def _work(self) -> None:
        try:
            while not self._is_stopping:
                self._bell.clear()
                self._bell.wait(self._updater.work())
        except Exception:
            logger.exception("the updater ends, because it met something that it does not know how to go on with")
            self._has_failed = True
            self.stop()


def tell_systemd(state: str) -> None:
    """``READY=1`` and the like, where systemd waits for it (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.connect(f"\0{address[1:]}" if address.startswith("@") else str(Path(address)))
        notify.send(state.encode())
