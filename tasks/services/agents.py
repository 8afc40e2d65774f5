"""An agent release's work: to release a device is to say which agent it shall run (UPG-10)."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Exists, OuterRef, Subquery

from devices.models import Device
from fleet.targeting.models import TargetState
from tasks.models import TaskRun, TaskTarget
from tasks.policy import artifact
from tasks.selectors.agents import digests, release_spec, wanted
from upgrades.services import agent_upgrades_set, agents_let_be

BATCH = 2000
MOST_CHARS = 150


def ask(run: TaskRun, devices: Mapping[int, str]) -> set[int]:
    """Have these devices (names by id) run the version; those that are told. The run is locked."""
    spec = release_spec(run)
    architectures = Device.objects.filter(pk__in=devices).values_list("pk", "architecture")
    targets = {pk: target for pk, architecture in architectures if (target := artifact(spec, architecture))}
    agent_upgrades_set(devices=targets, by=_name(run), again=True)
    return set(targets)


def follow(run: TaskRun) -> None:
    """Let each target lead to the attempt that brings it about; one that another run led to first stays there."""
    attempt = wanted(run).exclude(attempt=None).values("attempt_id")[:1]
    elsewhere = TaskTarget.objects.filter(attempt_id=OuterRef("theirs")).exclude(pk=OuterRef("pk"))
    told = run.targets.filter(released_at__isnull=False, device__isnull=False).annotate(theirs=Subquery(attempt))
    rows = told.filter(~Exists(elsewhere), theirs__isnull=False).values_list("pk", "theirs", "attempt_id")
    changed = [TaskTarget(pk=pk, attempt_id=theirs) for pk, theirs, known in rows if theirs != known]
    TaskTarget.objects.bulk_update(changed, ["attempt"], batch_size=BATCH)


def take_back(run: TaskRun) -> None:
    """Let devices that have not begun keep what they have; the run is locked."""
    told = run.targets.filter(state=TargetState.RELEASED, device__isnull=False)
    agents_let_be(device_ids=list(told.values_list("device_id", flat=True)), digests=digests(run), by=_name(run))


def _name(run: TaskRun) -> str:
    """Who wants the agents, as their devices' pages say; cut to what their column holds."""
    return f"{run.kind} {run}"[:MOST_CHARS]
