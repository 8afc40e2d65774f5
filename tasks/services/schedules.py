"""Schedules: runs of one task at the times of a cron expression, kept by django-celery-beat (TSK-9)."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from agent.wire import cron
from devices.services.deployers import check_groups
from fleet.core import audit, clock
from fleet.core.door import Admitted
from fleet.core.errors import Conflict
from fleet.core.fsm import locked
from fleet.core.jobs import BELL_SECONDS
from fleet.core.kinds import Done
from tasks import policy
from tasks.models import TaskRun, TaskSchedule
from tasks.selectors.schedules import following, live_run, schedule_spec
from tasks.services.applying import taskrun_make

KIND = "TaskSchedule"
JOB = "tasks.run_schedule"


def schedule_apply(*, manifest: Admitted, actor: User | None, dry_run: bool = False) -> Done:
    """Bring the schedule of that namespace and name to the manifest's spec; runs that were made stay as they are.

    Raises:
        Denied: the actor may not deploy to one of the groups (DEP-7).
    """
    check_groups(manifest.spec["template"].get("allowedGroups", ()), actor=actor)
    try:
        return _apply(manifest, actor, dry_run)
    except IntegrityError:  # somebody else made it just now
        return _apply(manifest, actor, dry_run)


def _apply(manifest: Admitted, actor: User | None, dry_run: bool) -> Done:
    metadata = manifest.manifest.metadata
    with transaction.atomic():
        found = TaskSchedule.objects.select_for_update().filter(namespace=metadata.namespace, name=metadata.name)
        there = found.first()
        if there is None:
            return Done("created", 1, None if dry_run else _create(manifest, actor).pk)
        fields = {"labels": dict(metadata.labels), "annotations": dict(metadata.annotations)}
        is_same = there.spec_hash == manifest.spec_hash
        if not dry_run and (not is_same or any(getattr(there, name) != value for name, value in fields.items())):
            _change(there, manifest, fields, actor)
        generation = there.generation + (dry_run and not is_same)
        return Done("unchanged" if is_same else "configured", generation, there.pk)


def _create(manifest: Admitted, actor: User | None) -> TaskSchedule:
    metadata, now = manifest.manifest.metadata, clock.now()
    crontab = CrontabSchedule.objects.create(**_crontab_fields(manifest.spec))
    made: TaskSchedule = TaskSchedule.objects.create(
        namespace=metadata.namespace,
        name=metadata.name,
        labels=dict(metadata.labels),
        annotations=dict(metadata.annotations),
        spec=manifest.spec,
        spec_hash=manifest.spec_hash,
        created_at=now,
        created_by=actor.get_username() if actor else "",
        crontab=crontab,
        next_at=following(crontab, now),
    )
    PeriodicTask.objects.create(
        name=f"{KIND} {made.uid}",
        task=JOB,
        args=json.dumps([made.pk]),
        crontab=crontab,
        expire_seconds=BELL_SECONDS,
        description=f"{KIND} {made}",
    )
    audit.record(actor=actor, action="apply", kind=KIND, name=str(made), detail={"generation": 1})
    return made


def _change(schedule: TaskSchedule, manifest: Admitted, fields: dict[str, Any], actor: User | None) -> None:
    for name, value in fields.items():
        setattr(schedule, name, value)
    if schedule.spec_hash != manifest.spec_hash:
        schedule.spec, schedule.spec_hash = manifest.spec, manifest.spec_hash
        schedule.generation += 1
        for name, value in _crontab_fields(manifest.spec).items():
            setattr(schedule.crontab, name, value)
        schedule.crontab.save()
        schedule.next_at = None if schedule.suspended else following(schedule.crontab, clock.now())
    schedule.save()
    audit.record(actor=actor, action="apply", kind=KIND, name=str(schedule), detail={"generation": schedule.generation})


def _crontab_fields(spec: dict[str, Any]) -> dict[str, str]:
    minute, hour, day, month, weekday = cron.read(spec["schedule"])
    return {
        "minute": minute,
        "hour": hour,
        "day_of_month": day,
        "month_of_year": month,
        "day_of_week": weekday,
        "timezone": spec.get("timeZone", "UTC"),
    }


def schedule_suspend(*, schedule: TaskSchedule, suspended: bool, actor: User | None) -> None:
    """Let no time of it count, or let the times from now on count again; what runs goes on. Twice changes nothing."""
    with locked(TaskSchedule, schedule.pk) as fresh:
        if fresh.suspended == suspended:
            return
        fresh.suspended = suspended
        fresh.next_at = None if suspended else following(fresh.crontab, clock.now())
        for bell in PeriodicTask.objects.filter(crontab=fresh.crontab):
            bell.enabled = not suspended
            bell.save()
        audit.record(actor=actor, action="suspend" if suspended else "resume", kind=KIND, name=str(fresh))


def schedule_delete(*, schedule: TaskSchedule, actor: User | None) -> None:
    """Make no more runs; those that were made stay, and go on. Twice changes nothing."""
    with transaction.atomic():
        found = TaskSchedule.objects.select_for_update().filter(pk=schedule.pk).first()
        if found is not None:
            crontab = found.crontab
            audit.record(actor=actor, action="delete", kind=KIND, name=str(found))
            found.delete()
            crontab.delete()


def schedule_run_now(*, schedule: TaskSchedule, actor: User | None) -> TaskRun:
    """One run more than the times ask for; the next time stays as it is.

    Raises:
        Denied: the actor may not deploy to one of the groups (DEP-7).
        Conflict: a run of it is under way.
    """
    check_groups(schedule_spec(schedule).template.allowedGroups, actor=actor)
    with locked(TaskSchedule, schedule.pk) as fresh:
        if under_way := live_run(fresh):
            raise Conflict(
                f"TaskRun {under_way} of {KIND} {fresh} is under way; end it first, or wait until it is over"
            )
        now = clock.now()
        fresh.last_run = taskrun_make(schedule=fresh, at=now, actor=actor)
        fresh.message = f"Made {fresh.last_run} because it was asked for"
        audit.record(actor=actor, action="run-now", kind=KIND, name=str(fresh))
        made: TaskRun = fresh.last_run
    return made


def schedule_tick(*, schedule_id: int) -> None:
    """Make the run of the time that has come, if one has; may be called at any time, any number of times (R14)."""
    now = clock.now()
    if not TaskSchedule.objects.filter(pk=schedule_id, suspended=False, next_at__lte=now).exists():
        return
    try:
        with locked(TaskSchedule, schedule_id) as fresh:
            if not fresh.suspended and fresh.next_at is not None and fresh.next_at <= now:
                _act(fresh, fresh.next_at, now)
    except TaskSchedule.DoesNotExist:
        return


def _act(schedule: TaskSchedule, first: datetime, now: datetime) -> None:
    due = policy.newest_time(first, now, partial(following, schedule.crontab))
    schedule.last_at, schedule.next_at = due or first, following(schedule.crontab, now)
    if due is None:
        _tell(schedule, "Missed", f"{first:%Y-%m-%d %H:%M} UTC was missed: nothing looked at it within an hour")
    elif under_way := live_run(schedule):
        _tell(schedule, "Skipped", f"{due:%Y-%m-%d %H:%M} UTC was skipped: {under_way} was still under way")
    else:
        schedule.last_run = taskrun_make(schedule=schedule, at=due, actor=None)
        _tell(schedule, "Made", f"Made {schedule.last_run} for {due:%Y-%m-%d %H:%M} UTC")


def _tell(schedule: TaskSchedule, reason: str, message: str) -> None:
    schedule.message = message
    audit.event(kind=KIND, name=str(schedule), reason=f"Schedule{reason}", message=message)
