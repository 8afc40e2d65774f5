"""Writes what a revision's status says: phase, counts, conditions and the sentence, and only what changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from fleet.targeting import conditions
from fleet.targeting.policy import Tally
from rollouts import policy
from rollouts.models import Phase, Revision
from rollouts.selectors import images_of, standing
from rollouts.services.history import phase_move

#: ``evaluated_at`` moves at least this often, so that people see that somebody still looks.
LOOK = timedelta(seconds=30)

_STATUS = ("phase", "matched", "released", "converged", "failed", "offline", "message", "conditions")


def conclude(revision: Revision, *, counted: Tally, now: datetime) -> None:
    """Phase, counts, conditions and sentence of a frozen revision from one tally."""
    with _noticing(revision, now):
        phase = policy.next_phase(counted)
        message = policy.sentence(phase, counted, standing.blockers(revision, phase, counted, now), now)
        if phase != revision.phase:
            phase_move(revision, to=phase, message=message, now=now)
        every = counted.all
        revision.matched, revision.released = every.total, counted.told
        revision.converged, revision.failed, revision.offline = every.converged, every.failed, counted.offline
        _say(revision, counted, message, now)


def finish(revision: Revision, *, phase: Phase, message: str, now: datetime) -> None:
    """Superseded or cancelled: the counts stay as they were."""
    with _noticing(revision, now):
        counted = standing.tally(revision, now)
        phase_move(revision, to=phase, message=message, now=now)
        _say(revision, counted, message, now)


def stay_pending(revision: Revision, *, obstacle: conditions.Obstacle, now: datetime) -> None:
    """Nothing was frozen: say why (DEP-7, DEP-10)."""
    with _noticing(revision, now):
        revision.message = obstacle.message
        revision.conditions = conditions.pending_conditions(
            revision.conditions, obstacle, now=now, generation=revision.generation
        )


def _say(revision: Revision, counted: Tally, message: str, now: datetime) -> None:
    revision.message = message
    generation = revision.generation
    said = policy.progress_conditions(
        revision.conditions, revision.phase, counted, message, now=now, generation=generation
    )
    revision.conditions = policy.image_conditions(
        said, images_of(revision), converged=counted.all.converged, now=now, generation=generation
    )


@contextmanager
def _noticing(revision: Revision, now: datetime) -> Iterator[None]:
    """``evaluated_at`` moves when something changed, else rarely: an evaluation that finds nothing writes nothing."""
    before = _shown(revision)
    yield
    if _shown(revision) != before or revision.evaluated_at is None or now - revision.evaluated_at > LOOK:
        revision.evaluated_at = now


def _shown(revision: Revision) -> list[Any]:
    return [getattr(revision, name) for name in _STATUS]
