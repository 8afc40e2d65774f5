"""Counting a frozen set."""

from __future__ import annotations

from typing import Any

from django.db.models import Count as CountRows
from django.db.models import QuerySet

from fleet.targeting.models import TargetState
from fleet.targeting.policy import Count

_FIELDS = {
    TargetState.HELD: "held",
    TargetState.RELEASED: "waiting",
    TargetState.CONVERGED: "converged",
    TargetState.FAILED: "failed",
    TargetState.ENDED: "ended",
}


def counts(targets: QuerySet[Any]) -> tuple[Count, Count]:
    """Canaries and the rest of a set, by state: one query."""
    rows = targets.order_by().values_list("canary", "state").annotate(rows=CountRows("pk"))
    found: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for canary, state, number in rows:
        found[canary][_FIELDS[TargetState(state)]] = number
    return Count(**found[True]), Count(**found[False])
