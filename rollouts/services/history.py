"""What happened to a revision, written beside what it is now."""

from __future__ import annotations

from datetime import datetime

from fleet.core import audit
from rollouts.models import Deployment, Phase, PhaseChange, Revision

KIND = "Deployment"


def phase_move(revision: Revision, *, to: str, message: str, now: datetime) -> None:
    """Take the one transition that leads from here to ``to``; history row and event are written with it.

    Raises:
        TransitionNotAllowed: when the model draws no such arrow.
    """
    source = str(revision.phase)
    _transition(revision, to)(now)
    PhaseChange.objects.create(revision=revision, at=now, source=source, target=to, message=message)
    tell(revision.deployment, reason=to, message=message or f"generation {revision.generation} is {to.lower()}")


def _transition(revision: Revision, to: str):  # type: ignore[no-untyped-def]  # bound methods of django_fsm
    if to == Phase.CANARY:
        return revision.begin_canary if revision.phase == Phase.PENDING else revision.resume_canary
    return {
        Phase.RELEASING: revision.begin_releasing,
        Phase.CONVERGED: revision.mark_converged,
        Phase.FAILED: revision.mark_failed,
        Phase.SUPERSEDED: revision.supersede,
        Phase.CANCELLED: revision.cancel,
    }[Phase(to)]


def tell(deployment: Deployment, *, reason: str, message: str) -> None:
    """An event about a deployment."""
    audit.event(kind=KIND, name=str(deployment), reason=reason, message=message)
