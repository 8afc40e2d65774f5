"""What a pass asks of Podman: as little as possible, whatever the number of deployments (AGT-14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.reconcile.deployment import LIST_GRAIN_SECONDS
from agent.reconcile.reconciler import InlineWorkers
from agent.runtime.podman import PodmanRuntime
from harness.waiting import wait_until
from tests.integration.agent.conftest import RealEdge
from tests.support.fake_control import FakeControlPlane, score, service
from tests.support.podman import Containers

DEPLOYMENTS = 10
MOST_CALLS = 3
#: Now and then, and after its start, the agent looks for images that nothing uses (AGT-15).
FOR_UNUSED_IMAGES = 2


class CountingRuntime(PodmanRuntime):
    """Podman, with a note of every request."""

    def __init__(self, socket: str) -> None:
        super().__init__(socket)
        self.calls: list[str] = []

    def _call(self, method: str, path: str, **options: Any) -> Any:
        self.calls.append(f"{method} {path}")
        return super()._call(method, path, **options)


@pytest.fixture
def resting(make_edge: Callable[..., RealEdge], containers: Containers, control: FakeControlPlane) -> RealEdge:
    """An agent whose ten deployments, one with an init container, have converged and run for a while."""
    edge = make_edge(containers, workers=InlineWorkers(), settle_seconds=0)
    edge.runtime = CountingRuntime(str(containers.podman.socket))
    edge.boot()
    for number in range(DEPLOYMENTS):
        init = None if number else service("migrate", containers.image("done"))
        control.want(f"u{number}", score(service(f"api-{number}", containers.image("service")), init=init))
    for number in range(DEPLOYMENTS):
        edge.work_until(f"u{number}", "converged")
    started = max(container.started_at for container in edge.runtime.containers())
    wait_until(lambda: edge.agent.clock.now() > started + LIST_GRAIN_SECONDS, seconds=5, what="all are at rest")
    return edge


def calls_of_a_pass(edge: RealEdge) -> list[str]:
    assert isinstance(edge.runtime, CountingRuntime)
    edge.runtime.calls.clear()
    edge.agent.reconcile(retry=True)
    return edge.runtime.calls


@pytest.mark.clause("AGT-14")
def test_a_pass_over_ten_unchanged_deployments_asks_for_one_list(
    resting: RealEdge, control: FakeControlPlane, containers: Containers
) -> None:
    calls_of_a_pass(resting)
    assert calls_of_a_pass(resting) == ["GET /containers/json"]

    containers.podman.cli("pause", "api-3")
    calls_of_a_pass(resting)
    repaired = calls_of_a_pass(resting)
    assert len(repaired) <= MOST_CALLS + 1, repaired

    resting.boot()
    first = calls_of_a_pass(resting)
    looks = 2 * (DEPLOYMENTS + 1)  # a new agent looks once at each container, and at the image behind it
    assert len(first) <= MOST_CALLS + looks + FOR_UNUSED_IMAGES, first
    assert calls_of_a_pass(resting) == ["GET /containers/json"]
