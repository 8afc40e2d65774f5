"""What a revision's phase, sentence and conditions are, from counts: pure (DEP-15, DEP-16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.core.conditions import set_condition
from fleet.targeting import wording
from fleet.targeting.policy import Tally, Verdict, gate_is_open, verdict
from fleet.targeting.wording import Blocker
from rollouts.images import Standing

Conditions = list[dict[str, Any]]

NO_GROUP_SOURCE = "No group source is configured, so no device matches; see docs/how-to/groups.md"
NO_DEVICE = "NoDeviceMatches"

_PHASES = {
    Verdict.TRYING_CANARIES: "Canary",
    Verdict.SPREADING: "Releasing",
    Verdict.CONVERGED: "Converged",
    Verdict.FAILED: "Failed",
}
_UNDER_WAY = ("Pending", "Canary", "Releasing")


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


def next_phase(tally: Tally) -> str:
    """The phase of a frozen revision."""
    return _PHASES[verdict(tally)]


def must_release(tally: Tally) -> bool:
    """Whether somebody has to be told now: canaries at once, the rest when the gate is open (DEP-11)."""
    return tally.canaries.held > 0 or (not tally.opened and gate_is_open(tally))


def sentence(phase: str, tally: Tally, blockers: Sequence[Blocker], now: datetime) -> str:
    """What a frozen revision waits for, and on which devices; empty when it waits for nothing (DEP-16)."""
    every, canaries = tally.all, tally.canaries
    if phase == "Canary":
        missing = canaries.total - tally.proven
        return wording.waiting(blockers, missing=missing, total=canaries.total, canaries=True, now=now)
    if phase == "Releasing":
        missing = every.total - every.converged
        return wording.waiting(blockers, missing=missing, total=every.total, canaries=False, now=now)
    if phase == "Failed":
        failing = canaries if canaries.failed else every
        return wording.failed(
            blockers, count=failing.failed, total=failing.total, canaries=canaries.failed > 0, now=now
        )
    return ""


def pending_conditions(existing: Conditions, obstacle: Obstacle, *, now: datetime, generation: int) -> Conditions:
    """The conditions of a revision that matches nobody yet."""
    stamp = _Stamp(existing, now, generation)
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
    stamp = _Stamp(existing, now, generation)
    stamp.set("GroupSourceMissing", False, "Configured", "")
    stamp.set("TargetsFrozen", True, "Frozen", f"{_devices(size)}, {canaries or 'none'} of them canary")
    return stamp.conditions


def progress_conditions(
    existing: Conditions, phase: str, tally: Tally, message: str, *, now: datetime, generation: int
) -> Conditions:
    """The conditions of a revision after its freeze, also when it was superseded or ended."""
    stamp = _Stamp(existing, now, generation)
    stamp.set("Progressing", phase in _UNDER_WAY, phase, message if phase in _UNDER_WAY else "")
    failed = tally.all.failed
    stamp.set("Degraded", failed > 0, "DevicesFailed" if failed else "NoneFailed", message if phase == "Failed" else "")
    stamp.set("Ready", phase == "Converged", phase, message)
    return stamp.conditions


def latecomer_conditions(
    existing: Conditions, names: Sequence[str], *, retarget: str, now: datetime, generation: int
) -> Conditions:
    """Says which devices came after the freeze, and how to include them (DEP-10)."""
    stamp = _Stamp(existing, now, generation)
    if names:
        listed = wording.names(names)
        message = f"{_devices(len(names))} came after the freeze: {listed}; to include: {retarget}"
        stamp.set("Latecomers", True, "CameAfterFreeze", message)
    else:
        stamp.set("Latecomers", False, "None", "")
    return stamp.conditions


def image_conditions(
    existing: Conditions, tags: Sequence[Standing], *, converged: int, now: datetime, generation: int
) -> Conditions:
    """Says what the tags of a revision stand for (DEP-18); nothing of a revision that names digests only."""
    if not tags:
        return existing
    stamp = _Stamp(existing, now, generation)
    is_open = [each for each in tags if not each.digest]
    words = wording.names([_stands_for(each) for each in tags])
    if not is_open:
        stamp.set("ImagesResolved", True, "Resolved", words)
    elif converged:
        stamp.set("ImagesResolved", False, "NoDigest", words)
    else:
        stamp.set("ImagesResolved", False, "NothingProven", words)
    return stamp.conditions


def _stands_for(tag: Standing) -> str:
    if tag.digest:
        return f"{tag.reference} is {tag.digest}, proven by {tag.device}" + (f" ({tag.note})" if tag.note else "")
    return f"{tag.reference}: {tag.note or 'resolved by the first device that converges and reports its digest'}"


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


class _Stamp:
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
