"""A run is ended by an operator, or by itself: what has not begun never does; what has begun is never interrupted."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from fleet.core import audit, clock
from fleet.core.fsm import locked
from fleet.targeting.models import TargetState
from fleet.targeting.services import targets_end, targets_fail
from tasks.models import LIVE_PHASES, Phase, TaskRun
from tasks.selectors import counted
from tasks.services.history import count, phase_move
from tasks.services.works import work_of


def taskrun_end(*, run: TaskRun, actor: User | None) -> None:
    """Release nothing more, for good; accepted attempts finish (TSK-7). Ending what is over changes nothing (R7)."""
    with locked(TaskRun, run.pk) as fresh:
        who = actor.get_username() if actor else "the system"
        if _cancel(fresh, f"Ended by {who}; what has begun is finished and stays in the history"):
            audit.record(actor=actor, action="end", kind=fresh.kind, name=str(fresh))


def taskrun_delete(*, run: TaskRun, actor: User | None) -> None:
    """Release nothing more and free the name; the run stays in the history (TSK-7). Twice changes nothing."""
    with locked(TaskRun, run.pk) as fresh:
        if fresh.deleted_at is None:
            _cancel(fresh, "Deleted; what has begun is finished and stays in the history")
            fresh.deleted_at = clock.now()
            audit.record(actor=actor, action="delete", kind=fresh.kind, name=str(fresh))


def _cancel(run: TaskRun, message: str) -> bool:
    if run.phase not in LIVE_PHASES:
        return False
    now = clock.now()
    stop(run, why="withdrawn before it had begun", now=now)
    phase_move(run, to=Phase.CANCELLED, message=message, now=now)
    count(run, *counted(run), now)
    return True


def stop(run: TaskRun, *, why: str, now: datetime) -> None:
    """Under the run's lock: withdraw what no device has begun, and end what was never released.

    A device may have begun and not said so yet: should it complete, its target is completed after all.
    """
    work = work_of(run)
    work.take_back(run)
    not_begun = run.targets.filter(work.never_begun(run), state=TargetState.RELEASED)
    targets_fail(not_begun, message=why, now=now)
    targets_end(run.targets.filter(state=TargetState.HELD), now=now)
