"""Port mappings in Podman's notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.ports import PortMapping, parse

numbers = st.integers(1, 65535)
ANY = ("", "0.0.0.0", "::")  # noqa: S104  (compared with, not bound to)


@pytest.mark.clause("DEP-3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8080:80", [PortMapping("", 8080, 80, "tcp")]),
        ("127.0.0.1:53:53/udp", [PortMapping("127.0.0.1", 53, 53, "udp")]),
        ("[::1]:80:80", [PortMapping("::1", 80, 80, "tcp")]),
        ("7-8:17-18", [PortMapping("", 7, 17, "tcp"), PortMapping("", 8, 18, "tcp")]),
    ],
)
def test_a_mapping_is_read_as_podman_reads_it(text: str, expected: list[PortMapping]) -> None:
    assert parse(text) == expected


@pytest.mark.clause("DEP-3")
@pytest.mark.parametrize(
    "text",
    ["", "80", ":80", "80:", "a:b", "0:1", "1:0", "65536:1", "2-1:1-2", "1-2:1", "::1:80:80", "1:1/sctp", "1:1\n"],
)
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"allowed|equal"):
        parse(text)


@given(st.text(max_size=30))
def test_any_text_is_refused_or_gives_real_ports(text: str) -> None:
    try:
        mappings = parse(text)
    except ValueError:
        return
    assert mappings
    assert all(1 <= each.host <= 65535 and 1 <= each.container <= 65535 for each in mappings)


@pytest.mark.clause("DEP-5")
@given(numbers, st.sampled_from([*ANY, "127.0.0.1", "10.0.0.1"]), st.sampled_from(["tcp", "udp"]))
def test_a_port_clashes_with_itself_on_every_address_that_overlaps(port: int, address: str, protocol: str) -> None:
    mapping = PortMapping(address, port, 80, protocol)
    assert mapping.clashes(PortMapping("", port, 81, protocol))
    assert PortMapping("", port, 81, protocol).clashes(mapping)
    assert not mapping.clashes(PortMapping("192.0.2.1", port, 80, "tcp" if protocol == "udp" else "udp"))
    elsewhere = PortMapping("192.0.2.1", port, 80, protocol)
    assert mapping.clashes(elsewhere) == (address in ANY)
