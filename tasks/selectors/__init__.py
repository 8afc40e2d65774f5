"""Every read of task runs that is more than a get."""

from tasks.selectors.lists import (
    counts_by_state,
    counts_of,
    run_status,
    runs_of_attempts,
    runs_to_evaluate,
    shown_state,
    target_row,
    target_rows,
    targets_of,
)
from tasks.selectors.schedules import (
    following,
    live_run,
    schedule_spec,
    schedule_status,
    schedule_text,
    schedules_due,
)
from tasks.selectors.specs import spec_of
from tasks.selectors.standing import blockers, counted, free

__all__ = [
    "blockers",
    "counted",
    "counts_by_state",
    "counts_of",
    "following",
    "free",
    "live_run",
    "run_status",
    "runs_of_attempts",
    "runs_to_evaluate",
    "schedule_spec",
    "schedule_status",
    "schedule_text",
    "schedules_due",
    "shown_state",
    "spec_of",
    "target_row",
    "target_rows",
    "targets_of",
]
