"""Port mappings in Podman's notation: ``[ip:]host:container[/tcp|udp]``, each side a number or a range."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.wire import names

_PARTS = re.compile(
    r"(?:(?P<ip>\[[0-9a-fA-F:.]+\]|[0-9.]+):)?"
    r"(?P<host>[0-9]{1,5})(?:-(?P<host_end>[0-9]{1,5}))?:"
    r"(?P<container>[0-9]{1,5})(?:-(?P<container_end>[0-9]{1,5}))?"
    r"(?:/(?P<protocol>tcp|udp))?"
)
HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class PortMapping:
    """One published port; a range in a manifest becomes several of them."""

    host_ip: str
    host: int
    container: int
    protocol: str

    def clashes(self, other: PortMapping) -> bool:
        """Whether both cannot be published on one host: same number and protocol on overlapping addresses."""
        same_socket = (self.host, self.protocol) == (other.host, other.protocol)
        return same_socket and (self.host_ip == other.host_ip or is_any(self.host_ip) or is_any(other.host_ip))


@dataclass(frozen=True, slots=True)
class PortRange:
    """One manifest entry, not yet spread out: a few bytes of text may mean 65,535 ports."""

    host_ip: str
    host: range
    container: range
    protocol: str

    def mappings(self) -> Iterator[PortMapping]:
        """The single ports of the entry."""
        for host, container in zip(self.host, self.container, strict=True):
            yield PortMapping(self.host_ip, host, container, self.protocol)


def read(text: str) -> PortRange:
    """One manifest entry (DEP-3).

    Raises:
        ValueError: with a sentence that says what is wrong and what is allowed.
    """
    found = _PARTS.fullmatch(text)
    if found is None or not names.fits(names.PORT_MAPPING, text):
        raise ValueError("is not a port mapping; allowed: [ip:]host:container[/tcp|udp], numbers or ranges")
    host_ip = _address(found["ip"])
    host = _range(found["host"], found["host_end"])
    container = _range(found["container"], found["container_end"])
    if len(host) != len(container):
        raise ValueError(f"maps {len(host)} host ports to {len(container)} container ports; both ranges must be equal")
    return PortRange(host_ip, host, container, found["protocol"] or "tcp")


def parse(text: str) -> list[PortMapping]:
    """The single mappings of one manifest entry (DEP-3).

    Raises:
        ValueError: as :func:`read` does.
    """
    return list(read(text).mappings())


def is_any(host_ip: str) -> bool:
    """Whether a port of this address is published on every address of the host."""
    return host_ip in ("", "0.0.0.0", "::")  # noqa: S104  (compared with, not bound to)


def _range(first: str, last: str | None) -> range:
    start, end = int(first), int(last or first)
    for number in (start, end):
        if not 1 <= number <= HIGHEST_PORT:
            raise ValueError(f"has port {number}; allowed: 1 to {HIGHEST_PORT}")
    if end < start:
        raise ValueError(f"has the reversed range {start}-{end}; allowed: lower port first")
    return range(start, end + 1)


def _address(text: str | None) -> str:
    if text is None:
        return ""
    bare = text.strip("[]")
    try:
        address = ipaddress.ip_address(bare)
        return str(getattr(address, "ipv4_mapped", None) or address)  # two ways to write the same socket
    except ValueError:
        raise ValueError(f"has host address {bare!r}; allowed: an IPv4 address, or IPv6 in brackets") from None
