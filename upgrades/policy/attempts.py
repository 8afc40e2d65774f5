"""Which word of a device about an attempt counts, whatever order they come in, and how a journal is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

#: The steps of each executor in their order, as journals name them (SYS-1, UPG-3). An agent upgrade's ``restore`` is on
#: no way that leads to its end, so it is none of them.
SEQUENCES = {
    "systemUpgradeV1": ("accepted", "preflight", "update", "simulate", "upgrade", "audit", "reboot", "verify"),
    "agentUpgradeV1": (
        *("accepted", "preflight", "download", "verify", "unpack", "self-test", "probe"),
        *("stop", "switch", "start", "readiness"),
    ),
}
#: How a step of a journal went. ``broken off``: another step came and this one never said how it ended.
DONE, UNDER_WAY, STEP_FAILED, BROKEN_OFF = "done", "under way", "failed", "broken off"

#: An attempt only goes up in rank. Of the same rank the first word stays, so an end is never taken back. Above
#: ``given-up`` is what a device that came back after all says of how it went; above ``repair-required`` and
#: ``rollback-failed``, what root's repair came to (SYS-6, UPG-4).
RANKS = {
    "offered": 0,
    "withdrawn": 0,
    "accepted": 1,
    "running": 2,
    "given-up": 3,
    "repair-required": 4,
    "rollback-failed": 4,
    "completed": 5,
    "failed": 5,
    "refused": 5,
}
ENDED = 5
#: Only root, on the device itself, brings it on from here.
NEEDS_ROOT = ("repair-required", "rollback-failed")


def state_after(known: str, said: str) -> str:
    """The state of an attempt in state ``known`` of which a device says ``said``: order-free."""
    return said if RANKS[said] > RANKS[known] else known


def has_begun(state: str) -> bool:
    """Whether the device took the attempt on; a refusal is none."""
    return RANKS[state] > 0 and state != "refused"


def may_be_given_up(state: str) -> bool:
    """Whether the device has begun and not said how it went: only then somebody waits for its word.

    One that waits for root may have been made anew from an image meanwhile, and will never speak of it again.
    """
    return state in ("accepted", "running", *NEEDS_ROOT)


def has_ended(state: str) -> bool:
    """Whether nobody waits for the device's word any more; what needs root is no end."""
    return RANKS[state] == ENDED or state == "given-up"


class Line(Protocol):
    """What is needed of a journal's entry here."""

    step: str
    event: str
    at: datetime | None
    boot_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """A line; ``booted`` says that the device had been started anew since the line before it."""

    line: Line
    booted: bool


@dataclass(slots=True)
class Passage:
    """One step of a journal: its lines, when it began and how it went."""

    step: str
    told: list[Told] = field(default_factory=list)
    outcome: str = UNDER_WAY

    @property
    def began_at(self) -> datetime | None:
        """By the device's clock."""
        return self.told[0].line.at

    @property
    def lasted(self) -> timedelta | None:
        """From its first to its last line; None when the device's clock went back, or was not known."""
        first, last = self.told[0].line.at, self.told[-1].line.at
        return last - first if first and last and last >= first else None

    def leave(self) -> None:
        """Nothing more comes of this step: one that began and never said how it ended was broken off."""
        if self.outcome == UNDER_WAY:
            self.outcome = BROKEN_OFF if any(each.line.event == "began" for each in self.told) else DONE


def passages(journal: Iterable[Line], *, is_over: bool) -> list[Passage]:
    """A journal in the order of its numbers as a list of steps. ``is_over``: nothing more will come of it."""
    found: list[Passage] = []
    boot = ""
    for line in journal:
        if not found or found[-1].step != line.step:
            if found:
                found[-1].leave()
            found.append(Passage(line.step))
        passage = found[-1]
        passage.told.append(Told(line, bool(boot and line.boot_id and line.boot_id != boot)))
        passage.outcome = {"ended": DONE, "failed": STEP_FAILED, "began": UNDER_WAY}.get(line.event, passage.outcome)
        boot = line.boot_id or boot
    if found and is_over:
        found[-1].leave()
    return found
