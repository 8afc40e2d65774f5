"""Task runs on simulated devices: the real agent and the real updater on machines that upgrade nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.updater.simulated import Pace
from simulation.cast import Knobs
from tasks.models import Phase, TaskRun
from tests.integration.simulation.rehearsal import Rehearsal
from upgrades.models import Attempt, JournalEntry

pytestmark = pytest.mark.django_db

Rehearse = Callable[..., Rehearsal]
#: So that a thousand devices have little to tell on the way.
AT_ONCE = Pace(update=0, upgrade=0, boot=0)


def _history(run: TaskRun) -> list[tuple[str, str]]:
    return list(run.history.values_list("event", "message"))


def _run_to_end(scene: Rehearsal, run: TaskRun) -> TaskRun:
    def is_over() -> bool:
        run.__dict__.update(TaskRun.objects.filter(pk=run.pk).values().get())
        return run.phase in (Phase.COMPLETED, Phase.FAILED)

    scene.until(is_over, within=3600)
    return run


@pytest.mark.slow
@pytest.mark.clause("TSK-3", "TSK-8")
def test_a_thousand_devices_upgrade_after_their_ten_canaries(rehearse: Rehearse) -> None:
    scene = rehearse(1000, Knobs(), pace=AT_ONCE)
    canaries = scene.fleet.devices[::100]
    for device in canaries:
        scene.make_canary(device)
    run = _run_to_end(scene, scene.upgrade())
    assert _history(run) == [
        ("Canary", "1000 devices frozen, 10 of them canary"),
        ("Released", "offered to 10 canaries"),
        ("Running", "every canary completed"),
        ("Released", "offered to 990 devices"),
        ("Completed", "Done: 1000 devices completed"),
    ]
    names = {device.name for device in canaries}
    of_canaries, of_others = (
        Attempt.objects.filter(device_name__in=names),
        Attempt.objects.exclude(device_name__in=names),
    )
    assert max(of_canaries.values_list("ended_at", flat=True)) <= min(of_others.values_list("offered_at", flat=True))
    assert scene.fleet.failures == 0
    last = JournalEntry.objects.filter(attempt__in=Attempt.objects.all(), step="verify", event="ended")
    assert last.count() == 1000


@pytest.mark.clause("TSK-3")
def test_a_canary_that_fails_keeps_everybody_else_as_they_are(rehearse: Rehearse) -> None:
    scene = rehearse(20, Knobs(failing_upgrades=0.05))
    (sick,) = scene.some(lambda device: device.character.fails_upgrades)
    scene.make_canary(sick)
    run = _run_to_end(scene, scene.upgrade())
    assert run.phase == Phase.FAILED
    assert f"Canary {sick.name} failed" in run.message
    assert list(Attempt.objects.values_list("device_name", flat=True)) == [sick.name]


@pytest.mark.clause("SYS-3", "TSK-4")
@pytest.mark.case("R11")
def test_devices_with_every_fault_upgrade_and_their_journals_have_no_gap(rehearse: Rehearse) -> None:
    knobs = Knobs(offline=0.3, offline_seconds=40, duplicate=0.3, reorder=0.3, clock_off=0.3, clock_hours=2)
    scene = rehearse(24, knobs)
    scene.pass_time(120)  # until everybody's updater is known
    run = _run_to_end(scene, scene.upgrade())
    assert run.phase == Phase.COMPLETED, run.message
    scene.pass_time(200)
    for attempt in Attempt.objects.all():
        numbers = list(attempt.journal.values_list("number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1)), attempt
        assert attempt.journal.last().step == "verify"
