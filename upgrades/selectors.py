"""Reads about attempts that are more than a get."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import msgspec
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from agent.wire.manifest import AgentUpgrade
from fleet.core import clock
from upgrades import policy
from upgrades.models import BEGUN, NEEDS_ROOT, OPEN, Attempt, DesiredAgent, JournalEntry, Standing, State
from upgrades.policy import Case, Known, Verdict

TAIL = 3


def attempt_for(device_id: int, uid: UUID | None) -> Attempt | None:
    """This device's own attempt; of another device's nobody learns that it exists."""
    return Attempt.objects.filter(device_id=device_id, uid=uid).first() if uid else None


def remaining_seconds(attempt: Attempt) -> int:
    """Whole seconds in which it may begin, or go on to its next boot; 0 when nothing may (TSK-4)."""
    if attempt.state not in (State.OFFERED, *BEGUN):
        return 0
    return max(0, int((attempt.begin_until - clock.now()).total_seconds()))


def open_attempts(device_ids: Collection[int]) -> QuerySet[Attempt]:
    """Attempts that keep these devices from beginning another one (TSK-5)."""
    return Attempt.objects.filter(device_id__in=device_ids, state__in=OPEN)


def repair_required() -> QuerySet[Attempt]:
    """Attempts whose devices refuse every other one until root has repaired them (SYS-6, UPG-4), newest first."""
    found: QuerySet[Attempt] = Attempt.objects.filter(state__in=NEEDS_ROOT, device__isnull=False)
    return found


def journal_tails(attempt_ids: Collection[int]) -> dict[int, list[JournalEntry]]:
    """The last few entries of each attempt's journal, oldest first: one query."""
    newest = Window(RowNumber(), partition_by=F("attempt_id"), order_by=F("number").desc())
    rows = JournalEntry.objects.filter(attempt_id__in=attempt_ids).annotate(place=newest).filter(place__lte=TAIL)
    found: dict[int, list[JournalEntry]] = {}
    for row in rows.order_by("attempt_id", "number"):
        found.setdefault(row.attempt_id, []).append(row)
    return found


def agents_unsettled() -> QuerySet[DesiredAgent]:
    """Wanted agents that their devices do not run yet, or run no more."""
    settled = Q(state=Standing.CURRENT, device__agent_version=F("version"))
    found: QuerySet[DesiredAgent] = DesiredAgent.objects.exclude(settled)
    return found


def agents_judged(rows: QuerySet[DesiredAgent]) -> list[tuple[DesiredAgent, Verdict]]:
    """These wanted agents with what follows from all that is known: two queries."""
    unread = ("labels", "operator_labels", "reported_labels", "problems")
    related = rows.select_related("device", "attempt").defer(*(f"device__{name}" for name in unread))
    found = list(related)
    others = _others(found) if found else {}
    return [(row, policy.verdict(_case(row, others.get(row.device_id, "")))) for row in found]


def _others(rows: list[DesiredAgent]) -> dict[int, str]:
    """What else keeps these devices busy (TSK-5)."""
    own = {row.attempt_id for row in rows}
    opened = open_attempts([row.device_id for row in rows]).order_by("pk")
    return {
        attempt.device_id: f"{attempt.title}, which needs root: {policy.REPAIR}"
        if attempt.state in NEEDS_ROOT
        else attempt.title
        for attempt in opened
        if attempt.pk not in own and attempt.device_id is not None
    }


def _case(row: DesiredAgent, other: str) -> Case:
    device, attempt, now = row.device, row.attempt, clock.now()
    known = Known(attempt.state, attempt.step, attempt.message, now >= attempt.begin_until) if attempt else None
    return Case(
        target=msgspec.convert(row.spec, AgentUpgrade),
        reported=device.agent_version,
        architecture=device.architecture,
        capabilities=device.capabilities,
        attempt=known,
        other=other,
        since=row.state_since if row.state == Standing.CURRENT else now,
    )


def may_be_retried(row: DesiredAgent) -> bool:
    """Whether its attempt is over and its device runs another agent. (``row`` with its attempt and device.)"""
    is_over = row.attempt is not None and policy.has_ended(row.attempt.state)
    return is_over and row.device.agent_version != row.version
