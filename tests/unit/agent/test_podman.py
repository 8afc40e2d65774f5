"""Podman's API where a real one is hard to bring into the situation: silence, nonsense, other versions' answers."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.runtime.base import ContainerSpec, Mount, RuntimeUnreachable, State
from agent.runtime.podman import PodmanRuntime
from agent.runtime.podman_data import creation, image, inspected, listed, wants_login, without_tag
from agent.wire.ports import PortMapping

DIGEST = f"sha256:{'a' * 64}"
LIST_DIGEST = f"sha256:{'b' * 64}"


@pytest.fixture
def mute() -> Iterator[Path]:
    """A socket on which somebody listens and never answers."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/api.sock")
        server.listen()
        yield Path(folder) / "api.sock"


@pytest.mark.clause("AGT-12")
@pytest.mark.case("P7", "P8")
def test_every_call_has_a_time_limit(mute: Path):
    runtime = PodmanRuntime(str(mute), call_seconds=0.2, pull_seconds=0.2)
    spec = ContainerSpec("one", "r.example/one:1", "no")
    calls = [
        runtime.version,
        runtime.containers,
        lambda: runtime.inspect("1"),
        lambda: runtime.logs("1", 5, 100),
        runtime.images,
        lambda: runtime.remove_image("1"),
        lambda: runtime.image("r.example/one:1"),
        lambda: runtime.probe("r.example/one:1"),
        lambda: runtime.pull("r.example/one:1"),
        lambda: runtime.create(spec),
        lambda: runtime.start("1"),
        lambda: runtime.unpause("1"),
        lambda: runtime.stop("1", 0),
        lambda: runtime.remove("1"),
    ]
    for call in calls:
        with pytest.raises(RuntimeUnreachable, match=r"Podman did not answer .* within 0\.2 s"):
            call()


def test_a_socket_that_is_not_there_is_said_in_the_system_s_words(tmp_path: Path):
    with pytest.raises(RuntimeUnreachable) as caught:
        PodmanRuntime(str(tmp_path / "none.sock")).version()
    assert str(caught.value) == f"Podman cannot be reached at unix://{tmp_path}/none.sock: No such file or directory"


def test_a_process_that_is_gone_makes_a_running_container_a_lost_one():
    entry = {"Id": "1", "Names": ["one"], "State": "running", "Pid": 4711, "StartedAt": 5, "Labels": None}
    assert listed(entry, lambda pid: False).state is State.RUNNING
    assert listed(entry, lambda pid: pid == 4711).state is State.LOST
    assert listed(entry | {"State": "exited", "Pid": 0}, lambda pid: True).state is State.EXITED
    assert listed(entry | {"State": "something new"}, lambda pid: True).state is State.UNKNOWN


def test_times_that_never_were_are_zero_and_nanoseconds_are_read():
    found = {
        "Id": "1",
        "State": {
            "Status": "exited",
            "ExitCode": 3,
            "StartedAt": "2026-12-01T01:09:59.25728889Z",
            "FinishedAt": "0001-01-01T00:00:00Z",
        },
    }
    container = inspected(found, lambda pid: False)
    assert container.started_at == pytest.approx(1_796_087_399.257288)
    assert (container.finished_at, container.exit_code, container.health) == (0.0, 3, "")


def test_port_ranges_of_the_list_become_single_ports():
    entry = {
        "Id": "1",
        "State": "running",
        "Ports": [{"host_ip": "127.0.0.1", "host_port": 80, "container_port": 8080, "range": 2, "protocol": "tcp,udp"}],
    }
    ports = listed(entry, lambda pid: False).ports
    assert set(ports) == {
        PortMapping("127.0.0.1", 80 + offset, 8080 + offset, protocol)
        for offset in (0, 1)
        for protocol in ("tcp", "udp")
    }


def test_the_digest_of_a_manifest_list_is_the_one_to_pin():
    found = {
        "Id": "1",
        "Digest": DIGEST,
        "RepoDigests": [f"other.example/app@{LIST_DIGEST}", f"r.example/app@{DIGEST}", f"r.example/app@{LIST_DIGEST}"],
    }
    assert image(found, "r.example/app:1").digests == (LIST_DIGEST, DIGEST)
    assert image({"Id": "1", "Digest": DIGEST, "RepoDigests": None}, "app:1").digests == (DIGEST,)


@pytest.mark.parametrize(
    ("reference", "pulled"),
    [
        ("r.example:5000/app:1", "r.example:5000/app:1"),
        (f"r.example:5000/app:1@{DIGEST}", f"r.example:5000/app@{DIGEST}"),
        (f"r.example:5000/app@{DIGEST}", f"r.example:5000/app@{DIGEST}"),
    ],
)
def test_a_digest_makes_the_tag_needless(reference: str, pulled: str):
    assert without_tag(reference) == pulled


@pytest.mark.clause("AGT-4")
def test_podman_receives_exactly_what_was_written():
    hostile = "1\n'2\" --privileged ../$(reboot)\t\u202e"
    spec = ContainerSpec(
        name="one",
        image="r.example/one:1",
        restart_policy="on-failure:7",
        env={"A": hostile},
        ports=(PortMapping("::1", 53, 5353, "udp"),),
        mounts=(Mount("/srv/a b", "/data", read_only=True), Mount("/srv/c", "/c", read_only=False)),
        labels={"k": "v"},
    )
    assert creation(spec, 0) == {
        "name": "one",
        "image": "r.example/one:1",
        "env": {"A": hostile},
        "labels": {"k": "v"},
        "restart_policy": "on-failure",
        "restart_tries": 7,
        "portmappings": [{"host_ip": "::1", "host_port": 53, "container_port": 5353, "protocol": "udp"}],
        "mounts": [
            {"type": "bind", "source": "/srv/a b", "destination": "/data", "options": ["rbind", "ro"]},
            {"type": "bind", "source": "/srv/c", "destination": "/c", "options": ["rbind", "rw"]},
        ],
    }


@pytest.mark.clause("AGT-16")
def test_a_log_that_never_ends_is_given_up():
    with endless_log() as path, pytest.raises(RuntimeUnreachable, match=r"did not send the log within 0\.2 s"):
        PodmanRuntime(str(path), call_seconds=0.2).logs("1", 5, 100)


@contextlib.contextmanager
def endless_log() -> Iterator[Path]:
    """Somebody who answers every request with a log that goes on, little by little."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/api.sock")
        server.listen()

        def answer() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while True:
                    connection.sendall(b"a\r\n\x01\0\0\0\0\0\0\x02x\n\r\n")
                    time.sleep(0.01)

        threading.Thread(target=answer, daemon=True).start()
        yield Path(folder) / "api.sock"


@pytest.mark.parametrize(
    "said",
    [
        "reading manifest 1 in r.example/a: unauthorized: authentication required",
        "initializing source: Requesting bear token: invalid status code from registry 403 (Forbidden)",
        "reading manifest latest in docker.io/me/app: errors: denied: requested access to the resource is denied",
        "unable to retrieve auth token: invalid username/password: unauthorized: incorrect username or password",
    ],
)
def test_what_registries_say_to_strangers_is_recognised(said: str):
    assert wants_login(said)


def test_other_refusals_are_not_about_the_login():
    for said in ("reading manifest 1.0.403 in r.example/a: manifest unknown", "dial tcp 10.4.0.1:401: i/o timeout"):
        assert not wants_login(said)


def test_our_own_process_is_alive_to_us(mute: Path):
    assert not PodmanRuntime(str(mute))._is_gone(os.getpid())
