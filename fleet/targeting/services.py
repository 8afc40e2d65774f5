"""Freeze, release, absorb, end: a handful of statements each, for ten targets or ten thousand.

They work on querysets of models made from :class:`AbstractTarget`, inside the caller's transaction and under the lock
of the targets' owner. Each write filters on the state that it leaves (:data:`ARROWS`), so running twice changes
nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from fleet.targeting.models import ARROWS, AbstractTarget, TargetState
from fleet.targeting.policy import Chosen

#: Rows per INSERT. PostgreSQL's protocol takes 65,535 parameters; a target has about ten.
BATCH = 2000
FORGOTTEN = "the device was forgotten"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What devices said about their targets, as expressions correlated to the target's row.

    ``message`` is the device's own sentence.
    """

    converged: Exists | Q
    failed: Exists | Q
    progressing: Exists
    message: Subquery | Coalesce


def targets_freeze(
    model: type[AbstractTarget], *, chosen: Iterable[Chosen], owner: dict[str, Any], now: datetime
) -> int:
    """Write the frozen set of ``owner`` (its foreign key by field name), all held (DEP-10). Returns its size."""
    rows = [model(**owner, **_frozen(choice, now)) for choice in chosen]
    model._default_manager.bulk_create(rows, batch_size=BATCH)
    return len(rows)


def _frozen(choice: Chosen, now: datetime) -> dict[str, Any]:
    device = choice.device
    return {
        "device_id": device.id,
        "device_name": device.name,
        "device_uid": device.uid,
        "canary": device.canary,
        "reason": choice.reason,
        "state": TargetState.HELD,
        "since": now,
    }


def targets_release(targets: QuerySet[Any], *, now: datetime) -> int:
    """Mark held targets as told. The caller has put the item into the devices' desired state before."""
    return _move(targets, TargetState.RELEASED, sources=(TargetState.HELD,), now=now, released_at=now)


def targets_end(targets: QuerySet[Any], *, now: datetime) -> int:
    """Held targets will never be told (DEP-13, DEP-17). What was released stays as it is."""
    return _move(targets, TargetState.ENDED, now=now)


def targets_fail(targets: QuerySet[Any], *, message: str, now: datetime) -> int:
    """These targets have failed, by a decision and not by a device's word."""
    return _move(targets, TargetState.FAILED, now=now, message=message)


def targets_fail_forgotten(targets: QuerySet[Any], *, now: datetime) -> int:
    """A target whose device was forgotten has failed for good (DEP-12)."""
    return _move(targets.filter(device__isnull=True), TargetState.FAILED, now=now, message=FORGOTTEN)


def targets_absorb(targets: QuerySet[Any], *, evidence: Evidence, now: datetime) -> int:
    """Bring told targets in line with what their devices said last; returns how many rows changed.

    A failed target stays so until its device says ``converged``: a retry in progress is no success. A converged one
    without evidence is merely released again (AGT-6).
    """
    told = targets.filter(device__isnull=False, released_at__isnull=False)
    moved = _move(told.filter(evidence.converged), TargetState.CONVERGED, now=now)
    moved += _move(told.filter(evidence.failed), TargetState.FAILED, now=now, message=evidence.message)
    moved += _move(told.filter(~evidence.converged), TargetState.RELEASED, sources=(TargetState.CONVERGED,), now=now)
    return moved + _copy_messages(told, evidence)


def _copy_messages(told: QuerySet[Any], evidence: Evidence) -> int:
    says_the_same_state = Q(evidence.progressing, state=TargetState.RELEASED) | Q(
        evidence.failed, state=TargetState.FAILED
    )
    news = told.filter(says_the_same_state).exclude(message=evidence.message)
    return news.update(message=evidence.message)


def _move(
    targets: QuerySet[Any],
    to: TargetState,
    *,
    now: datetime,
    sources: tuple[TargetState, ...] = (),
    message: str | Subquery | Coalesce = "",
    **stamps: Any,
) -> int:
    return targets.filter(state__in=sources or ARROWS[to]).update(state=to, since=now, message=message, **stamps)
