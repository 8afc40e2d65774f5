"""A real Podman and a real registry for the whole run, with a few images; fixtures for agent tests."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.podman import IsolatedPodman
from demo.registry import LoopbackRegistry
from tests.support.needs import cannot, need

STAYS = ["sh", "-c", "trap 'exit 0' TERM; echo up; sleep 3600 & wait"]
IMAGES = {
    "service": STAYS,
    "stubborn": ["sh", "-c", "trap '' TERM; while true; do sleep 1; done"],
    "done": ["sh", "-c", "echo migrated"],
    "broken": ["sh", "-c", "echo cannot reach the database; exit 3"],
    "crashing": ["sh", "-c", "echo out of luck; sleep 0.2; exit 4"],
    "finishing": ["sh", "-c", "sleep 0.2"],
    "slow": ["sh", "-c", "sleep 3600"],
    # Leaves a line for each run in the volume at /data.
    "noting": ["sh", "-c", "echo ran >> /data/runs"],
    # A log of about 120 kB.
    "talking": ["sh", "-c", "i=0; while test $i -lt 2000; do i=$((i+1)); echo line $i; done; echo the end; sleep 99"],
    # Prints what it should keep to itself.
    "telling": ["sh", "-c", "printf 'no access with %s\\n' \"$DB_PASSWORD\"; exit 5"],
    # Fails until somebody puts a file into the volume at /data.
    "careful": ["sh", "-c", "echo looked; test -e /data/ready"],
}


@dataclass(frozen=True)
class Containers:
    """Podman, its registry, and the images that both know: ``image("done")`` is pinned, ``tag("done")`` is not."""

    podman: IsolatedPodman
    registry: LoopbackRegistry
    digests: dict[str, str]

    def tag(self, name: str) -> str:
        return f"{self.registry.address}/{name}:1"

    def image(self, name: str) -> str:
        return f"{self.registry.address}/{name}@{self.digests[name]}"

    def environment(self, name: str) -> dict[str, str]:
        """What the process of a container really got, from the kernel."""
        pid = self.podman.cli("inspect", "--format", "{{.State.Pid}}", name).strip()
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        return dict(entry.split("=", 1) for entry in entries if entry)


@contextlib.contextmanager
def start_containers(names: Iterable[str] = IMAGES) -> Iterator[Containers]:
    """A Podman without any image, beside a registry that has these of :data:`IMAGES`."""
    need_podman()
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="fleet-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        registry = stack.enter_context(LoopbackRegistry(folder / "registry"))
        podman = stack.enter_context(IsolatedPodman(folder / "podman", insecure_registries=[registry.address]))
        digests = {}
        for name in names:
            podman.build(f"{registry.address}/{name}:1", command=IMAGES[name])
            digests[name] = podman.push(f"{registry.address}/{name}:1")
        podman.cli("rmi", "--all", "--force")
        yield Containers(podman, registry, digests)


def need_podman() -> None:
    """Podman with a registry; also what it asks of the machine before an ordinary user may run containers."""
    need("podman", "runc", "docker-registry", "busybox")
    if os.geteuid() == 0:
        return
    need("newuidmap", "slirp4netns")
    user = pwd.getpwuid(os.geteuid()).pw_name
    for file in ("/etc/subuid", "/etc/subgid"):
        if not any(line.startswith(f"{user}:") for line in Path(file).read_text().splitlines()):
            cannot(f"{file} has no ids for {user}")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        cannot("/dev/net/tun is closed to ordinary users")


@pytest.fixture(scope="session")
def shared_containers() -> Iterator[Containers]:
    with start_containers() as started:
        yield started


@pytest.fixture
def containers(shared_containers: Containers) -> Iterator[Containers]:
    """The run's Podman, emptied of containers after the test; pulled images stay."""
    yield shared_containers
    shared_containers.podman.remove_containers()


@pytest.fixture
def own_containers() -> Iterator[Containers]:
    """A Podman for this test alone, which may kill it or let it lose its power; images: service, done, slow."""
    with start_containers(["service", "done", "slow"]) as started:
        yield started


@pytest.fixture
def free_port() -> int:
    """A host port that nobody holds."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
