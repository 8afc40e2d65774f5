"""A task run over a thousand simulated devices: the real agents and updaters, the real control plane."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.updater.simulated import Pace
from simulation.cast import Knobs
from tests.integration.simulation.rehearsal import Rehearsal
from tests.integration.simulation.test_upgrades import run_to_end
from upgrades.models import Attempt, JournalEntry

pytestmark = pytest.mark.django_db

#: So that a thousand devices have little to tell on the way.
AT_ONCE = Pace(update=0, upgrade=0, boot=0)


@pytest.mark.timeout(600)
@pytest.mark.clause("TSK-3", "TSK-8")
def test_a_thousand_devices_upgrade_after_their_ten_canaries(rehearse: Callable[..., Rehearsal]) -> None:
    scene = rehearse(1000, Knobs(), pace=AT_ONCE)
    canaries = scene.fleet.devices[::100]
    for device in canaries:
        scene.make_canary(device)
    run = run_to_end(scene, scene.upgrade())
    assert list(run.history.values_list("event", "message")) == [
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
