"""Who has to wait, and who does not: jitter and back-off are for the registry's sake (R8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.runtime.base import State
from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane, score
from tests.unit.agent.kit import API, MIGRATE, faults, names


@pytest.fixture
def patient(tmp_path: Path, control: FakeControlPlane) -> Edge:
    """A device that spreads its pulls over an hour."""
    return Edge(tmp_path / "patient", control, pull_jitter_seconds=3600)


@pytest.mark.case("R8")
def test_nothing_waits_when_the_images_are_here(patient: Edge, control: FakeControlPlane):
    for image in (API.image, MIGRATE.image):
        patient.runtime.pull(image)
    control.want("u1", score(API, init=MIGRATE))
    patient.go()
    assert names(patient) == {"migrate": State.EXITED, "api": State.RUNNING}


@pytest.mark.case("R8")
def test_an_image_that_came_by_itself_ends_the_back_off(edge: Edge, control: FakeControlPlane):
    faults(edge).fail_pull = ["*"]
    control.want("u1", score(API))
    for _ in range(6):
        edge.go()
        edge.clock.forward(300)
    assert names(edge) == {}
    faults(edge).fail_pull = []
    edge.runtime.pull(API.image)
    faults(edge).fail_pull = ["*"]
    edge.go()
    assert names(edge) == {"api": State.RUNNING}
