"""A manifest becomes a run, once; its spec never changes after that (TSK-7)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from typing import Any

import msgspec
from django.contrib.auth.models import User
from django.db import transaction

from agent.wire import canonical
from agent.wire.manifest import MAX_ENTRIES, AgentReleaseSpec, TaskRunSpec, TaskScheduleSpec
from agent.wire.updater import AGENT_UPGRADE_V1, SYSTEM_UPGRADE_V1
from devices.services.deployers import check_groups
from fleet.core import audit, clock
from fleet.core.door import Admitted
from fleet.core.errors import Conflict
from fleet.core.fsm import locked
from fleet.core.kinds import Done
from fleet.targeting.models import TargetState
from tasks.models import Kind, TaskRun, TaskSchedule
from tasks.selectors import spec_of
from tasks.services.bells import ring_for_run

#: What the specs of a run are called, and which executor brings each about.
SPECS: dict[str, type[TaskRunSpec] | type[AgentReleaseSpec]] = {
    Kind.TASK_RUN: TaskRunSpec,
    Kind.AGENT_RELEASE: AgentReleaseSpec,
}
EXECUTORS = {Kind.TASK_RUN: SYSTEM_UPGRADE_V1, Kind.AGENT_RELEASE: AGENT_UPGRADE_V1}


def taskrun_apply(*, manifest: Admitted, actor: User | None, dry_run: bool = False) -> Done:
    """Make the run of that kind, namespace and name; the same spec again changes nothing.

    Raises:
        Denied: the actor may not deploy to one of the groups (DEP-7).
        Conflict: the run exists with another spec, which can't be changed.
    """
    metadata, kind = manifest.manifest.metadata, Kind(manifest.manifest.kind)
    check_groups(manifest.spec.get("allowedGroups", ()), actor=actor)
    identity = {"kind": kind, "namespace": metadata.namespace, "name": metadata.name, "deleted_at": None}
    with transaction.atomic():
        there = TaskRun.objects.filter(**identity).first()
        if there is None and not dry_run:
            there, created = TaskRun.objects.get_or_create(**identity, defaults=_fields(manifest, actor))
            if created:
                _begin(there, actor)
                return Done("created", 1, there.pk)
    if there is None:
        return Done("created", 1, None)
    if there.spec_hash != manifest.spec_hash:
        raise Conflict(
            f"{kind} {there} exists with another spec, and a {kind.label}'s spec never changes; "
            "give the new one another name, or delete this one first"
        )
    return Done("unchanged", 1, there.pk)


def taskrun_recreate(*, run: TaskRun, actor: User | None) -> TaskRun:
    """A new run of the same task for the devices that failed in this one (TSK-8).

    Raises:
        Conflict: none failed, or more than a selector can name.
        Denied: the actor may not deploy to one of the groups (DEP-7).
    """
    spec = spec_of(run)
    check_groups(spec.allowedGroups, actor=actor)
    failed = run.targets.filter(state=TargetState.FAILED, device__isnull=False).order_by("device_name")
    devices = list(failed.values_list("device_name", flat=True))
    if not devices:
        raise Conflict(f"no device that still exists failed in {run.kind} {run}, so there is nothing to repeat")
    if len(devices) > MAX_ENTRIES:
        raise Conflict(
            f"{len(devices)} devices failed in {run.kind} {run}; a selector names at most {MAX_ENTRIES}, "
            "so apply a manifest that selects them by a label"
        )
    with locked(TaskRun, run.pk):  # of two who repeat it at once the second finds the first one's name taken
        made = _again(run, spec, devices, actor)
        _begin(made, actor)
    return made


def _again(run: TaskRun, spec: TaskRunSpec | AgentReleaseSpec, devices: list[str], actor: User | None) -> TaskRun:
    selector = {"matchExpressions": [{"key": "device-id", "operator": "In", "values": devices}]}
    repeated = msgspec.convert({**run.spec, "targetSelector": selector}, type(spec))
    return _make(run, _names(run.name), _timed(repeated, actor))


def taskrun_make(*, schedule: TaskSchedule, at: datetime, actor: User | None) -> TaskRun:
    """The run of a schedule for one of its times; belongs into the caller's transaction, which holds the schedule."""
    name = f"{schedule.name[:230].rstrip('-.')}-{at.astimezone(UTC):%Y%m%d-%H%M}"
    spec = msgspec.convert(schedule.spec, TaskScheduleSpec).template
    timed = _timed(spec, actor)
    by = timed["created_by"] or f"TaskSchedule {schedule}"[:150]
    made = _make(schedule, chain([name], _names(name)), {**timed, "created_by": by, "schedule": schedule})
    _begin(made, actor)
    return made


def _make(like: TaskRun | TaskSchedule, names: Iterator[str], fields: dict[str, Any]) -> TaskRun:
    """A run in the namespace and with the labels of another object, under the first name that is free."""
    there = TaskRun.objects.filter(kind=fields["kind"], namespace=like.namespace, deleted_at=None)
    taken = set(there.values_list("name", flat=True))
    name = next(name for name in names if name not in taken)
    made: TaskRun = TaskRun.objects.create(
        namespace=like.namespace, name=name, labels=like.labels, annotations=like.annotations, **fields
    )
    return made


def _names(name: str) -> Iterator[str]:
    """``upgrade-2``, ``upgrade-3``, …, cut to what a name may be long."""
    return (f"{name[:240].rstrip('-.')}-{number}" for number in count(2))


def _fields(manifest: Admitted, actor: User | None) -> dict[str, Any]:
    metadata = manifest.manifest.metadata
    spec = msgspec.convert(manifest.spec, SPECS[manifest.manifest.kind])
    return {"labels": dict(metadata.labels), "annotations": dict(metadata.annotations), **_timed(spec, actor)}


def _timed(spec: TaskRunSpec | AgentReleaseSpec, actor: User | None) -> dict[str, Any]:
    now = clock.now()
    kind = Kind.AGENT_RELEASE if isinstance(spec, AgentReleaseSpec) else Kind.TASK_RUN
    return {
        "kind": kind,
        "spec": msgspec.to_builtins(spec),
        "spec_hash": canonical.digest(spec),
        "executor": EXECUTORS[kind],
        "created_at": now,
        "created_by": actor.get_username() if actor else "",
        "deadline_at": now + timedelta(seconds=spec.deadlineSeconds),
        "phase_since": now,
        "message": "Waiting for the first evaluation",
    }


def _begin(run: TaskRun, actor: User | None) -> None:
    audit.record(actor=actor, action="apply", kind=run.kind, name=str(run), detail={"deadline": str(run.deadline_at)})
    ring_for_run(run.pk)
