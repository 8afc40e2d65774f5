"""Which ports of the host are held, from the kernel's own tables."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.runtime.base import Listener
from agent.runtime.host import LinuxHost


@pytest.fixture
def tcp() -> Iterator[socket.socket]:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


@pytest.mark.clause("AGT-1")
def test_listening_and_bound_sockets_are_seen_and_connections_are_not(tcp: socket.socket):
    host, port = LinuxHost(), tcp.getsockname()[1]
    assert Listener("127.0.0.1", port, "tcp") not in host.listeners()
    tcp.listen()
    assert Listener("127.0.0.1", port, "tcp") in host.listeners()
    with socket.create_connection(("127.0.0.1", port)) as client:
        assert Listener("127.0.0.1", client.getsockname()[1], "tcp") not in host.listeners()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        assert Listener("127.0.0.1", datagrams.getsockname()[1], "udp") in host.listeners()


@pytest.mark.parametrize(
    ("table", "address", "listener"),
    [
        ("tcp", "00000000:1F90", Listener("0.0.0.0", 8080, "tcp")),  # noqa: S104
        ("tcp6", "00000000000000000000000000000000:0050", Listener("::", 80, "tcp")),
        ("tcp6", "00000000000000000000000001000000:0016", Listener("::1", 22, "tcp")),
        ("tcp6", "0000000000000000FFFF00000100007F:01BB", Listener("127.0.0.1", 443, "tcp")),
    ],
)
def test_addresses_as_the_kernel_writes_them(tmp_path: Path, table: str, address: str, listener: Listener):
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    (tmp_path / table).write_text(f"{head}   0: {address} 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n")
    assert LinuxHost(tmp_path).listeners() == {listener}


def test_only_what_is_certainly_missing_is_missing(tmp_path: Path):
    host = LinuxHost()
    assert host.is_missing(str(tmp_path / "gone"))
    assert not host.is_missing(str(tmp_path))
    (tmp_path / "file").touch()
    assert host.is_missing(str(tmp_path / "file" / "below"))
    assert not host.is_missing(f"/{'x' * 300}"), "not to be known is not to be missing"
