"""When a schedule's times are, and where it stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django_celery_beat.models import CrontabSchedule

from agent.wire.manifest import TaskScheduleSpec
from fleet.core import clock, manifest_text
from tasks.models import LIVE_PHASES, TaskRun, TaskSchedule

#: Wall clocks repeat at most this much when they are set back.
REPEATED = timedelta(hours=1)


def following(crontab: CrontabSchedule, moment: datetime) -> datetime:
    """The first time after ``moment``. An hour that the wall clock repeats counts once, one that it skips is made up.

    Raises:
        RuntimeError: the expression never comes true; the door lets no such in.
    """
    start, delta, _ = crontab.schedule.remaining_delta(moment.astimezone(crontab.timezone))
    found: datetime = (start + delta).astimezone(UTC)
    return found if found > moment else following(crontab, moment + REPEATED)


def schedule_spec(schedule: TaskSchedule) -> TaskScheduleSpec:
    """The schedule's spec as its type."""
    return msgspec.convert(schedule.spec, TaskScheduleSpec)


def schedule_text(schedule: TaskSchedule) -> str:
    """The manifest that would make it again."""
    return manifest_text.as_yaml("TaskSchedule", schedule, schedule.spec)


def live_run(schedule: TaskSchedule) -> TaskRun | None:
    """The run of it that is under way."""
    found: TaskRun | None = schedule.runs.filter(phase__in=LIVE_PHASES).first()
    return found


def schedules_due() -> list[int]:
    """Those whose time has come: one query."""
    found = TaskSchedule.objects.filter(suspended=False, next_at__lte=clock.now())
    return list(found.order_by("pk").values_list("pk", flat=True))


def schedule_status(schedule: TaskSchedule) -> dict[str, Any]:
    """The status object of every entrance."""
    return {
        "suspended": schedule.suspended,
        "nextTime": schedule.next_at,
        "lastTime": schedule.last_at,
        "lastRun": schedule.last_run.name if schedule.last_run else "",
        "lastRunPhase": schedule.last_run.phase if schedule.last_run else "",
        "message": schedule.message,
    }
