"""Every write to task runs and their targets."""

from tasks.services.applying import taskrun_apply, taskrun_recreate
from tasks.services.ending import taskrun_delete, taskrun_end, taskrun_give_up
from tasks.services.evaluation import taskrun_evaluate
from tasks.services.passes import drain_attempts, sweep

__all__ = [
    "drain_attempts",
    "sweep",
    "taskrun_apply",
    "taskrun_delete",
    "taskrun_end",
    "taskrun_evaluate",
    "taskrun_give_up",
    "taskrun_recreate",
]
