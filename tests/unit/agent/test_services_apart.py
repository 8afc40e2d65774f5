"""Services of one deployment that Podman refuses, and what becomes of the others (AGT-6, AGT-7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.runtime.base import ContainerSpec, RuntimeFailure, RuntimeUnreachable, State
from tests.support.devices import Edge, ManualClock, Watched
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API, names

BAD = service("bad", "r.example/bad:1")
WORSE = service("worse", "r.example/bad:1")


class Refusing(Watched):
    """Refuses to create some containers, in its own words or because it is away."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.refused = {"bad", "worse"}
        self.error: type[RuntimeFailure] = RuntimeFailure
        self.asked: list[str] = []

    def create(self, spec: ContainerSpec) -> str:
        self.asked.append(spec.name)
        if spec.name in self.refused:
            raise self.error(f"no room for {spec.name}")
        return super().create(spec)


@pytest.fixture
def runtime() -> Refusing:
    return Refusing()


@pytest.fixture
def edge(tmp_path: Path, control: FakeControlPlane, runtime: Refusing) -> Edge:
    control.want("u1", score(BAD, API, WORSE))
    return Edge(tmp_path / "state", control, runtime=runtime, clock=runtime.clock)


@pytest.mark.clause("AGT-7")
def test_a_service_that_cannot_be_created_does_not_keep_the_others_down(
    edge: Edge, control: FakeControlPlane, runtime: Refusing
) -> None:
    edge.go()
    assert names(edge) == {"api": State.RUNNING}
    said = control.last("u1")
    assert said.state == "failed"
    assert said.message == (
        "container bad cannot be created: no room for bad; container worse cannot be created: no room for worse"
    )
    (api,) = runtime.containers()
    runtime.stop(api.id, 1)
    edge.settle(30)
    assert names(edge) == {"api": State.RUNNING}
    runtime.refused = {"worse"}
    edge.settle(30)
    edge.settle()
    assert control.last("u1").message == "container worse cannot be created: no room for worse"
    runtime.refused.clear()
    edge.settle(30)
    edge.settle()
    assert control.last("u1").state == "converged"


@pytest.mark.clause("AGT-12")
def test_a_runtime_that_is_away_is_not_waited_for_once_per_service(edge: Edge, runtime: Refusing) -> None:
    runtime.error = RuntimeUnreachable
    edge.go()
    assert runtime.asked == ["bad"]
