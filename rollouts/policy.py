"""What a revision's phase, sentence and conditions are, from counts: pure (DEP-15, DEP-16)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fleet.targeting import wording
from fleet.targeting.conditions import Conditions, Stamp, devices
from fleet.targeting.policy import Tally, Verdict, gate_is_open, verdict
from fleet.targeting.wording import Blocker
from rollouts.images import Standing

_PHASES = {
    Verdict.TRYING_CANARIES: "Canary",
    Verdict.SPREADING: "Releasing",
    Verdict.CONVERGED: "Converged",
    Verdict.FAILED: "Failed",
}
_UNDER_WAY = ("Pending", "Canary", "Releasing")


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


def progress_conditions(
    existing: Conditions, phase: str, tally: Tally, message: str, *, now: datetime, generation: int
) -> Conditions:
    """The conditions of a revision after its freeze, also when it was superseded or ended."""
    stamp = Stamp(existing, now, generation)
    stamp.set("Progressing", phase in _UNDER_WAY, phase, message if phase in _UNDER_WAY else "")
    failed = tally.all.failed
    stamp.set("Degraded", failed > 0, "DevicesFailed" if failed else "NoneFailed", message if phase == "Failed" else "")
    stamp.set("Ready", phase == "Converged", phase, message)
    return stamp.conditions


def latecomer_conditions(
    existing: Conditions, names: Sequence[str], *, retarget: str, now: datetime, generation: int
) -> Conditions:
    """Says which devices came after the freeze, and how to include them (DEP-10)."""
    stamp = Stamp(existing, now, generation)
    if names:
        listed = wording.names(names)
        message = f"{devices(len(names))} came after the freeze: {listed}; to include: {retarget}"
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
    stamp = Stamp(existing, now, generation)
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
