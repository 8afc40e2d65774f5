"""Why nothing is frozen yet, and the conditions that every targeted object has (DEP-7, DEP-10, DEP-15). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.core.conditions import set_condition
from fleet.targeting import wording

Conditions = list[dict[str, Any]]

NO_GROUP_SOURCE = "No group source is configured, so no device matches; see docs/how-to/groups.md"
NO_DEVICE = "NoDeviceMatches"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why nothing could be frozen: one CamelCase word and one sentence."""

    reason: str
    message: str


GROUP_SOURCE_MISSING = Obstacle("GroupSourceMissing", NO_GROUP_SOURCE)


def group_source_failed(error: Exception) -> Obstacle:
    """The group source could not answer, so nothing is decided (DEP-7)."""
    words = wording.in_one_line(str(error)) or type(error).__name__
    return Obstacle("GroupSourceFailed", f"The group source did not answer: {words}; it is asked again")


def no_device(message: str) -> Obstacle:
    """Matching worked and found nobody (DEP-10)."""
    return Obstacle(NO_DEVICE, message)


def pending_conditions(existing: Conditions, obstacle: Obstacle, *, now: datetime, generation: int) -> Conditions:
    """The conditions of what matches nobody yet."""
    stamp = Stamp(existing, now, generation)
    stamp.set("TargetsFrozen", False, obstacle.reason, obstacle.message)
    if obstacle is GROUP_SOURCE_MISSING:
        stamp.set("GroupSourceMissing", True, "NotConfigured", obstacle.message)
    else:
        stamp.set("GroupSourceMissing", False, "Configured", "")
    stamp.set("Progressing", True, obstacle.reason, obstacle.message)
    stamp.set("Degraded", False, "NothingReleased", "")
    stamp.set("Ready", False, "Pending", obstacle.message)
    return stamp.conditions


def frozen_conditions(existing: Conditions, size: int, canaries: int, *, now: datetime, generation: int) -> Conditions:
    """The conditions at the instant of the freeze."""
    stamp = Stamp(existing, now, generation)
    stamp.set("GroupSourceMissing", False, "Configured", "")
    stamp.set("TargetsFrozen", True, "Frozen", f"{devices(size)}, {canaries or 'none'} of them canary")
    return stamp.conditions


def devices(count: int) -> str:
    """``1 device`` or ``7 devices``."""
    return "1 device" if count == 1 else f"{count} devices"


class Stamp:
    """Sets several conditions with one time and generation."""

    def __init__(self, conditions: Conditions, now: datetime, generation: int) -> None:
        self.conditions = conditions
        self._now = now
        self._generation = generation

    def set(self, kind: str, status: bool, reason: str, message: str) -> None:
        self.conditions = set_condition(
            self.conditions,
            type=kind,
            status=status,
            reason=reason,
            message=message,
            now=self._now,
            generation=self._generation,
        )
