"""A real worker on a real broker: bells arrive after commit, and a killed worker leaves nothing undone (R10, R13)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from devices.models import DesiredItem
from harness.process import ManagedProcess
from harness.waiting import wait_until
from rollouts import services
from rollouts.models import Phase, PhaseChange, Target
from tests.integration.rollouts.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Worker = Callable[..., ManagedProcess]


@pytest.fixture
def live(control_plane: object) -> World:
    """A fleet on the real clock, which the worker has too."""
    world = World()
    world.now = datetime.now(UTC)
    return world


@pytest.mark.case("R13")
def test_an_apply_reaches_the_worker_by_its_bell(live: World, celery_worker: Worker) -> None:
    device = live.device("edge-1")
    celery_worker(concurrency=2)
    deployment = live.apply().deployment
    assert deployment is not None
    wait_until(lambda: live.told(device, deployment) == 1, seconds=20, what="the device is told")
    assert live.revision(deployment).phase == Phase.RELEASING


@pytest.mark.case("R10")
@pytest.mark.parametrize("after", [0.1, 0.4, 0.9])
def test_a_worker_killed_in_the_middle_is_completed_by_the_next_pass(
    live: World, celery_worker: Worker, after: float
) -> None:
    live.devices([f"edge-{n}" for n in range(4000)])
    worker = celery_worker()
    deployment = live.apply().deployment
    assert deployment is not None
    time.sleep(after)  # somewhere between the bell and the end of the release
    worker.kill()
    services.sweep()
    assert live.revision(deployment).released == 4000
    assert Target.objects.count() == DesiredItem.objects.count() == 4000
    assert PhaseChange.objects.count() == 1
