"""Agents on real Podman: real containers, real images, a control plane in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.reconcile.reconciler import Workers
from agent.runtime.base import Container
from agent.runtime.host import LinuxHost
from agent.runtime.podman import PodmanRuntime
from agent.wire.manifest import PodmanV0
from agent.wire.messages import DeploymentReport
from harness.waiting import wait_until
from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane
from tests.support.podman import Containers

SETTLE_SECONDS = 1.0


class RealEdge(Edge):
    """A device whose containers are real; its clock is the machine's."""

    def container(self, name: str) -> Container:
        """One of Podman's containers by name, with all that can be known."""
        (found,) = [c for c in self.runtime.containers() if c.name == name]
        seen = self.runtime.inspect(found.id)
        assert seen is not None
        return seen

    def names(self) -> set[str]:
        return {container.name for container in self.runtime.containers()}

    def bring(self, uid: str, data: PodmanV0, *, revision: int = 1, state: str = "converged") -> DeploymentReport:
        """Want it, and work until it is in this state."""
        self.control.want(uid, data, revision=revision)
        return self.work_until(uid, state, revision=revision)

    def work_until(self, uid: str, state: str, *, revision: int = 1, retry: bool = False) -> DeploymentReport:
        """Passes until the newest report says so."""

        def reached() -> bool:
            self.go(retry=retry)
            return self.control.says(uid, state) and self.control.last(uid).revision == revision

        wait_until(reached, seconds=60, what=f"{uid} is {state}", every=0.1)
        return self.control.last(uid)


@pytest.fixture
def control() -> Iterator[FakeControlPlane]:
    with FakeControlPlane() as fake:
        yield fake


@pytest.fixture
def make_edge(tmp_path: Path, control: FakeControlPlane) -> Callable[..., RealEdge]:
    def make(containers: Containers, *, workers: Workers | None = None, **settings: float) -> RealEdge:
        return RealEdge(
            tmp_path / "state",
            control,
            runtime=PodmanRuntime(str(containers.podman.socket)),
            host=LinuxHost(),
            workers=workers,
            **({"settle_seconds": SETTLE_SECONDS} | settings),
        )

    return make


@pytest.fixture
def edge(make_edge: Callable[..., RealEdge], containers: Containers) -> RealEdge:
    return make_edge(containers)
