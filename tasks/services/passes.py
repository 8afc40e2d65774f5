"""What the periodic jobs do. An error of one run stops no other (R4)."""

from __future__ import annotations

from fleet.core.jobs import each
from tasks.models import TaskTarget
from tasks.selectors import runs_to_evaluate, schedules_due
from tasks.services.evaluation import taskrun_evaluate
from tasks.services.schedules import schedule_tick
from upgrades.services import attempts_tidy, reports_drain


def drain_attempts(*, limit: int) -> int:
    """Take a batch of reports in, then evaluate the runs that they touched; returns the number of inbox rows taken."""
    drained = reports_drain(limit=limit)
    touched = TaskTarget.objects.filter(attempt__in=drained.touched).values_list("run_id", flat=True)
    each(sorted(set(touched)), _evaluate)
    return drained.rows


def sweep() -> None:
    """Evaluate whatever may have something to do: schedules, deadlines, lost bells, devices that are free again."""
    each(schedules_due(), _tick)
    each(runs_to_evaluate(), _evaluate)
    attempts_tidy()


def _tick(pk: int) -> None:
    schedule_tick(schedule_id=pk)


def _evaluate(pk: int) -> None:
    taskrun_evaluate(run_id=pk)
