"""Conditions as Kubernetes has them: a list of observations, each with the time at which it last changed (DEP-15)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Conditions = list[dict[str, Any]]


def set_condition(
    conditions: Conditions,
    *,
    type: str,
    status: bool,
    reason: str,
    message: str,
    now: datetime,
    generation: int,
) -> Conditions:
    """A new list in which the condition of this type says so. ``lastTransitionTime`` moves only with ``status``."""
    before = next((each for each in conditions if each["type"] == type), None)
    word = "True" if status else "False"
    moved = before is None or before["status"] != word
    condition = {
        "type": type,
        "status": word,
        "reason": reason,
        "message": message,
        "lastTransitionTime": _stamp(now) if before is None or moved else before["lastTransitionTime"],
        "observedGeneration": generation,
    }
    if before is None:
        return [*conditions, condition]
    return [condition if each["type"] == type else each for each in conditions]


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
