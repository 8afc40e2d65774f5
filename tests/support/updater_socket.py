"""The agent's end of the updater's socket, as polite or as rude as a test wants it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any


def connect(path: Path) -> socket.socket:
    """A connection that waits at most ten seconds for anything."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(str(path))
    client.settimeout(10)
    return client


def rest(client: socket.socket) -> bytes:
    """All that still comes until the other end closes."""
    said = b""
    while data := client.recv(65_536):
        said += data
    return said


def say(path: Path, data: bytes) -> dict[str, Any]:
    """Send these bytes and hang up the sending half; the reply."""
    with connect(path) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return dict(json.loads(rest(client)))


def ask(path: Path, **request: Any) -> dict[str, Any]:
    """One request and its reply."""
    with connect(path) as client:
        client.sendall(json.dumps(request).encode() + b"\n")
        return dict(json.loads(rest(client)))
