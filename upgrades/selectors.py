"""Reads about attempts that are more than a get."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from fleet.core import clock
from upgrades.models import BEGUN, OPEN, Attempt, JournalEntry, State

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
    """Attempts whose devices refuse every other one until root has repaired them (SYS-6), newest first."""
    found: QuerySet[Attempt] = Attempt.objects.filter(state=State.REPAIR_REQUIRED, device__isnull=False)
    return found


def journal_tails(attempt_ids: Collection[int]) -> dict[int, list[JournalEntry]]:
    """The last few entries of each attempt's journal, oldest first: one query."""
    newest = Window(RowNumber(), partition_by=F("attempt_id"), order_by=F("number").desc())
    rows = JournalEntry.objects.filter(attempt_id__in=attempt_ids).annotate(place=newest).filter(place__lte=TAIL)
    found: dict[int, list[JournalEntry]] = {}
    for row in rows.order_by("attempt_id", "number"):
        found.setdefault(row.attempt_id, []).append(row)
    return found
