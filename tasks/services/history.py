"""What happened to a run, and what it says of itself now."""

from __future__ import annotations

from datetime import datetime

from fleet.core import audit
from fleet.targeting.policy import Count
from tasks import policy
from tasks.models import Chapter, Phase, TaskRun


def phase_move(run: TaskRun, *, to: Phase, message: str, now: datetime) -> None:
    """Take the one transition that leads there; history and event are written with it.

    Raises:
        TransitionNotAllowed: when the model draws no such arrow.
    """
    {
        Phase.CANARY: run.begin_canary,
        Phase.RUNNING: run.begin_running,
        Phase.COMPLETED: run.note_completion,
        Phase.FAILED: run.note_failure,
        Phase.CANCELLED: run.note_cancellation,
    }[to](now)
    run.message = message
    tell(run, event=to, message=message, now=now)


def tell(run: TaskRun, *, event: str, message: str, now: datetime) -> None:
    """A line of the run's history, and the same as an event."""
    Chapter.objects.create(run=run, at=now, event=event, message=message)
    audit.event(kind=run.kind, name=str(run), reason=event, message=message)


def count(run: TaskRun, canaries: Count, rest: Count, now: datetime) -> None:
    """Write the counts and conditions; ``locked`` saves them only when they differ."""
    every = canaries + rest
    run.matched, run.completed, run.failed, run.not_started = every.total, every.converged, every.failed, every.ended
    run.released = run.targets.filter(released_at__isnull=False).count()
    run.conditions = policy.conditions(run.conditions, run.phase, every, run.message, now)
