"""Every write to task runs and their targets."""

from tasks.services.applying import taskrun_apply, taskrun_recreate
from tasks.services.ending import taskrun_delete, taskrun_end
from tasks.services.evaluation import taskrun_evaluate
from tasks.services.giving_up import taskrun_give_up
from tasks.services.passes import drain_attempts, sweep
from tasks.services.schedules import (
    schedule_apply,
    schedule_delete,
    schedule_run_now,
    schedule_suspend,
    schedule_tick,
)

__all__ = [
    "drain_attempts",
    "schedule_apply",
    "schedule_delete",
    "schedule_run_now",
    "schedule_suspend",
    "schedule_tick",
    "sweep",
    "taskrun_apply",
    "taskrun_delete",
    "taskrun_end",
    "taskrun_evaluate",
    "taskrun_give_up",
    "taskrun_recreate",
]
