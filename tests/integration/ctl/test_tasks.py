"""Task runs and schedules by the real program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agent.wire.messages import AttemptState
from fleet.core import clock
from tasks.models import TaskRun, TaskSchedule
from tests.integration.ctl.cli import Fleetctl
from tests.integration.tasks.tasks import Tasks

pytestmark = pytest.mark.clause("API-2", "TSK-9")
SCHEDULE = Path(__file__).parents[2] / "contract" / "manifests" / "good" / "taskschedule.yaml"
NAME = "upgrade-lab-weekly"


@pytest.fixture
def tasks(fleetctl: Fleetctl) -> Iterator[Tasks]:
    made = Tasks()
    with clock.reading(lambda: made.now):
        yield made


def test_a_schedule_from_apply_to_deletion(fleetctl: Fleetctl, tasks: Tasks) -> None:
    done = fleetctl("apply", "--watch", "-f", str(SCHEDULE))  # it never ends, so there is nothing to watch
    assert (done.code, done.stdout) == (0, f"taskschedule default/{NAME} created: generation 1\n")
    assert fleetctl("get", "taskschedules", "-o", "name").stdout.strip() == f"default/{NAME}"
    assert "2026-12-06 01:30:00 UTC" in fleetctl("get", "taskschedule", NAME).stdout
    assert fleetctl("schedule", "suspend", NAME).stdout == f"taskschedule default/{NAME} suspended\n"
    assert TaskSchedule.objects.get().suspended
    assert "next run 2026-12-06 01:30:00 UTC" in fleetctl("schedule", "resume", f"default/{NAME}").stdout
    assert f"taskrun default/{NAME}-20261201-1400 created" in fleetctl("schedule", "run", NAME).stdout
    refused = fleetctl("schedule", "run", NAME)
    assert refused.code == 5
    assert "is under way; end it first, or wait until it is over" in refused.stderr
    refused = fleetctl("delete", "-f", str(SCHEDULE))
    assert "has a TaskSchedule; delete it with: fleetctl schedule delete NAME" in refused.stderr
    assert fleetctl("schedule", "delete", NAME).code == 0
    assert (TaskSchedule.objects.count(), TaskRun.objects.count()) == (0, 1)


@pytest.mark.clause("TSK-5")
def test_a_device_that_fell_silent_is_given_up(fleetctl: Fleetctl, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    fleetctl("apply", "-f", "-", stdin=yaml.safe_dump(tasks.taskrun()))
    tasks.look(TaskRun.objects.get())
    refused = fleetctl("taskrun", "give-up", "upgrade", "edge-1")
    assert refused.code == 5
    assert "is offered; allowed: accepted or running" in refused.stderr
    tasks.says_attempt(device, AttemptState.RUNNING)
    done = fleetctl("taskrun", "give-up", "upgrade", "edge-1")
    assert done.code == 0
    assert done.stdout.startswith("taskrun default/upgrade gave up edge-1: edge-1 failed: given up by ada")
    assert yaml.safe_load(fleetctl("get", "taskrun", "upgrade", "-o", "yaml").stdout)["status"]["phase"] == "Failed"
