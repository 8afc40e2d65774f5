"""The example manifest, fitted to this machine: a data folder of the demo's own, and a host port that is free."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

PATH = Path("docs/examples/analysis-api.yaml")
HOST_PATH = "/var/lib/analysis"
HOST_PORT = 8080


@dataclass(frozen=True, slots=True)
class Fitted:
    """The manifest's text, and what had to be changed, for people."""

    text: str
    changes: list[str]
    port: int


def fit(text: str, *, data: Path, port: int) -> Fitted:
    """The example with its volume below the demo's folder and, when 8080 is taken, another host port."""
    changes = [f"host_path: {data} instead of {HOST_PATH}"]
    text = text.replace(HOST_PATH, str(data))
    if port != HOST_PORT:
        changes.append(f"host port {port} instead of {HOST_PORT}, which is taken")
        text = text.replace(f'"{HOST_PORT}:', f'"{port}:')
    return Fitted(text, changes, port)


def free_port(preferred: int) -> int:
    """The preferred port if nobody listens on it, else one that is free."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free TCP port on this machine")
