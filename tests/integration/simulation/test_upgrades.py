"""Task runs on simulated devices: the real agent and the real updater on machines that upgrade nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simulation.cast import Knobs
from tasks.models import Phase, TaskRun
from tests.integration.simulation.rehearsal import Rehearsal
from upgrades.models import Attempt

pytestmark = pytest.mark.django_db

Rehearse = Callable[..., Rehearsal]


def run_to_end(scene: Rehearsal, run: TaskRun) -> TaskRun:
    def is_over() -> bool:
        run.__dict__.update(TaskRun.objects.filter(pk=run.pk).values().get())
        return run.phase in (Phase.COMPLETED, Phase.FAILED)

    scene.until(is_over, within=3600)
    return run


@pytest.mark.clause("TSK-3")
def test_a_canary_that_fails_keeps_everybody_else_as_they_are(rehearse: Rehearse) -> None:
    scene = rehearse(20, Knobs(failing_upgrades=0.05))
    (sick,) = scene.some(lambda device: device.character.fails_upgrades)
    scene.make_canary(sick)
    run = run_to_end(scene, scene.upgrade())
    assert run.phase == Phase.FAILED
    assert f"Canary {sick.name} failed" in run.message
    assert list(Attempt.objects.values_list("device_name", flat=True)) == [sick.name]


@pytest.mark.clause("SYS-3", "TSK-4")
@pytest.mark.case("R11")
def test_devices_with_every_fault_upgrade_and_their_journals_have_no_gap(rehearse: Rehearse) -> None:
    knobs = Knobs(offline=0.3, offline_seconds=40, duplicate=0.3, reorder=0.3, clock_off=0.3, clock_hours=2)
    scene = rehearse(24, knobs)
    scene.pass_time(120)  # until everybody's updater is known
    run = run_to_end(scene, scene.upgrade())
    assert run.phase == Phase.COMPLETED, run.message
    scene.pass_time(200)
    for attempt in Attempt.objects.all():
        numbers = list(attempt.journal.values_list("number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1)), attempt
        assert attempt.journal.last().step == "verify"
