"""A cable between this host and one machine: two addresses that nobody else has, and a plug."""

from __future__ import annotations

import ipaddress
import json
import random
import subprocess
from dataclasses import dataclass
from typing import Any

#: Where cables get their addresses: four each.
_RANGE = ipaddress.ip_network("10.200.0.0/14")
_SIZE = 4


@dataclass(frozen=True, slots=True)
class Cable:
    """``host`` and ``guest`` are the ends' addresses; ``interface`` is the host's end, made by nspawn."""

    interface: str
    host: str
    guest: str

    def attach(self) -> None:
        """Give the host's end its address, after each start of the machine."""
        _ip("address", "replace", f"{self.host}/30", "dev", self.interface)
        self.plug()

    def plug(self) -> None:
        _ip("link", "set", self.interface, "up")

    def unplug(self) -> None:
        """From now on no packet passes; connections hang, as when a switch loses power."""
        _ip("link", "set", self.interface, "down")

    def exists(self) -> bool:
        """Whether nspawn has made it."""
        return any(link["ifname"] == self.interface for link in _links())


def lay(machine: str) -> Cable:
    """A cable for the machine of that name, with addresses that no interface of this host has."""
    taken = {info["local"] for link in _links() for info in link.get("addr_info", [])}
    while True:
        start = int(_RANGE.network_address) + _SIZE * random.randrange(_RANGE.num_addresses // _SIZE)  # noqa: S311
        host, guest = (str(ipaddress.ip_address(start + offset)) for offset in (1, 2))
        if host not in taken:
            return Cable(f"ve-{machine}", host, guest)


def _links() -> list[dict[str, Any]]:
    done = subprocess.run(["ip", "-json", "address"], capture_output=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
