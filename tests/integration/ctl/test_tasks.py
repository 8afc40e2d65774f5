"""Task runs and schedules by the real program: apply, look, watch, end, repeat, give up (TSK-1, TSK-6 to TSK-9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from agent.wire.messages import AttemptState
from devices.models import Connectivity, Device
from fleet.core import clock
from fleet.core.models import AuditEntry
from tasks import services
from tasks.models import Phase, TaskRun, TaskSchedule
from tests.integration.ctl.cli import Fleetctl
from tests.integration.tasks.tasks import Tasks

pytestmark = pytest.mark.clause("API-2")


@pytest.fixture
def world(transactional_db: None) -> Iterator[Tasks]:
    """A fleet with updaters, whose clock stands still for the server's threads too."""
    made = Tasks()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def edge(world: Tasks) -> Device:
    return world.updaters(["edge-1"])[0]


def _apply(fleetctl: Fleetctl, manifest: dict[str, Any]) -> None:
    done = fleetctl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert done.code == 0, done.stderr
    services.sweep()


@pytest.mark.clause("TSK-1", "TSK-6")
def test_a_run_from_apply_to_its_end(fleetctl: Fleetctl, world: Tasks, edge: Device) -> None:
    _apply(fleetctl, world.taskrun())
    assert fleetctl("get", "taskruns", "-o", "name").lines == ["default/upgrade"]
    world.reports_attempt(edge, AttemptState.RUNNING, step="upgrade")
    world.says_attempt(edge)
    _, row = fleetctl("get", "taskruns").lines
    assert row.split()[:6] == ["default", "upgrade", "Running", "1", "0", "0"]
    assert row.endswith("Waiting for edge-1: at upgrade")
    found = yaml.safe_load(fleetctl("get", "taskrun", "upgrade", "-o", "yaml").stdout)
    assert found["status"]["targets"][0]["step"] == "upgrade"
    assert "upgrade" in fleetctl("describe", "taskrun", "upgrade").stdout
    world.says_attempt(edge, AttemptState.COMPLETED)
    watched = fleetctl("watch", "taskrun", "upgrade")
    assert watched.code == 0
    assert watched.lines[0] == "Completed, 1 of 1 completed, 1 released. Done: 1 device completed"


@pytest.mark.clause("TSK-7", "TSK-8")
def test_a_run_is_repeated_for_what_failed_ended_and_deleted(fleetctl: Fleetctl, world: Tasks, edge: Device) -> None:
    _apply(fleetctl, world.taskrun())
    world.says_attempt(edge, AttemptState.FAILED, message="no space on /boot")
    watched = fleetctl("watch", "taskrun", "upgrade")
    assert watched.code == 1
    assert "edge-1 failed: no space on /boot" in watched.stdout
    again = fleetctl("taskrun", "recreate", "upgrade")
    assert again.lines == ["taskrun default/upgrade-2 created for the devices that failed in default/upgrade"]
    ended = fleetctl("taskrun", "end", "default/upgrade-2")
    assert ended.lines == [
        "taskrun default/upgrade-2: Cancelled. Ended by ada; what has begun is finished and stays in the history"
    ]
    assert fleetctl("taskrun", "delete", "upgrade-2").lines == ["taskrun default/upgrade-2 deleted"]
    assert fleetctl("get", "taskruns", "-o", "name").lines == ["default/upgrade"]
    gone = fleetctl("taskrun", "end", "upgrade-2")
    assert (gone.code, gone.stdout) == (3, "")
    assert "there is no task run default/upgrade-2" in gone.stderr
    assert TaskRun.objects.get(name="upgrade-2").phase == Phase.CANCELLED


@pytest.mark.clause("TSK-5")
def test_a_silent_device_is_given_up_by_the_command_that_the_run_names(
    fleetctl: Fleetctl, world: Tasks, edge: Device
) -> None:
    _apply(fleetctl, world.taskrun())
    too_early = fleetctl("taskrun", "give-up", "upgrade", "edge-1")
    assert (too_early.code, "allowed: accepted, running, repair-required or rollback-failed" in too_early.stderr) == (
        5,
        True,
    ), too_early.stderr
    world.says_attempt(edge, AttemptState.ACCEPTED)
    world.goes(edge, Connectivity.OFFLINE)
    services.sweep()
    _, _, command = world.fresh(TaskRun.objects.get()).message.partition("will not come back: fleetctl ")
    assert fleetctl(*command.split()).code == 0
    services.sweep()
    assert world.shown(TaskRun.objects.get()) == {"edge-1": "Failed"}
    assert AuditEntry.objects.filter(action="give-up", actor__username="ada").count() == 1


@pytest.mark.clause("TSK-9")
def test_a_schedule_is_applied_suspended_run_and_deleted(fleetctl: Fleetctl, world: Tasks, edge: Device) -> None:
    template = world.taskrun()["spec"]
    schedule = {**world.taskrun("nightly"), "kind": "TaskSchedule"}
    _apply(fleetctl, {**schedule, "spec": {"schedule": "0 3 * * *", "timeZone": "Europe/Zurich", "template": template}})
    assert fleetctl("get", "taskschedules", "-o", "name").lines == ["default/nightly"]
    assert "Europe/Zurich" in fleetctl("get", "taskschedules").lines[1]
    assert fleetctl("schedule", "suspend", "nightly").lines == ["taskschedule default/nightly suspended"]
    assert fleetctl("schedule", "resume", "nightly").code == 0
    assert fleetctl("schedule", "run", "nightly").code == 0
    services.sweep()
    refused = fleetctl("schedule", "run", "nightly")
    assert (refused.code, "is under way" in refused.stderr) == (5, True), refused.stderr
    assert fleetctl("schedule", "delete", "nightly").code == 0
    assert (TaskSchedule.objects.count(), TaskRun.objects.count()) == (0, 1)


@pytest.mark.clause("TSK-1")
@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("systemUpgradeV1", {"command": "reboot"}, "callers cannot supply packages, repositories, commands or reboot"),
        ("deadlineSeconds", 0, "spec.deadlineSeconds: found 0; allowed: 60 to 2592000"),
        ("deadlineSeconds", -60, "spec.deadlineSeconds: found -60; allowed: 60 to 2592000"),
        ("deadlineSeconds", 315360000, "spec.deadlineSeconds: found 315360000; allowed: 60 to 2592000"),
    ],
)
def test_what_the_door_refuses_is_told_and_nothing_made(
    fleetctl: Fleetctl, world: Tasks, field: str, value: object, complaint: str
) -> None:
    manifest = world.taskrun()
    manifest["spec"][field] = value
    refused = fleetctl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert refused.code == 1
    assert complaint in refused.stderr + refused.stdout
    assert not TaskRun.objects.exists()
