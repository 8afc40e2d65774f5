"""The machine the agent runs on: which ports processes hold, which paths exist."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from agent.runtime.base import Listener

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LISTEN = "0A"
_UNCONNECTED = "07"
#: Table of the kernel → protocol and the socket state that means "this port is held".
_TABLES = {
    "tcp": ("tcp", _LISTEN),
    "tcp6": ("tcp", _LISTEN),
    "udp": ("udp", _UNCONNECTED),
    "udp6": ("udp", _UNCONNECTED),
}


class LinuxHost:
    """Reads ``/proc/net`` of the network namespace that the agent runs in, which is the host's."""

    def __init__(self, proc: Path = Path("/proc/net")) -> None:
        self._proc = proc

    def boot_id(self) -> str:
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""

    def listeners(self) -> frozenset[Listener]:
        """Held ports; a table that does not exist (no IPv6) is an empty one."""
        return frozenset(found for table in _TABLES for found in self._table(table))

    def is_missing(self, path: str) -> bool:
        """False as well when the agent may not look there."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return False

    def _table(self, name: str) -> Iterator[Listener]:
        protocol, held = _TABLES[name]
        try:
            lines = (self._proc / name).read_text().splitlines()[1:]
        except OSError:
            return
        for line in lines:
            columns = line.split()
            if len(columns) > 3 and columns[3] == held:
                address, _, port = columns[1].partition(":")
                yield Listener(_address(address), int(port, 16), protocol)


def _address(text: str) -> str:
    """The kernel prints addresses as 32-bit words in the machine's own byte order."""
    words = [bytes.fromhex(text[i : i + 8]) for i in range(0, len(text), 8)]
    raw = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
