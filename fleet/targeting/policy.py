"""Who is in a target set, and when the canary gate opens: decisions over plain data.

Nothing here reads a database or a clock. Rollouts use it today; task runs and agent upgrades have the same rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol
from uuid import UUID

from agent.wire.manifest import LabelSelector
from fleet.core import labels

MAX_REASON_CHARS = 1024


class Candidate(Protocol):
    """A device as far as matching looks at it."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> UUID: ...
    @property
    def canary(self) -> bool: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that is in the set, and why (DEP-10)."""

    device: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The outcome of matching: the set, and how many devices had the labels at all."""

    chosen: list[Chosen]
    labelled: int


def choose(
    selector: LabelSelector,
    allowed_groups: Collection[str],
    candidates: Iterable[Candidate],
    membership: Mapping[str, Collection[str]],
) -> Choice:
    """The candidates that have the labels and are in at least one allowed group (DEP-6, DEP-7).

    ``membership`` holds device names by group. No allowed group, or none that has the device, means no match.
    """
    labelled = [device for device in candidates if labels.matches(selector, device.labels)]
    described = labels.explain(selector)
    chosen = []
    for device in labelled:
        groups = [group for group in sorted(allowed_groups) if device.name in membership.get(group, ())]
        if groups:
            chosen.append(Chosen(device, _reason(described, groups)))
    return Choice(chosen, len(labelled))


def _reason(selector: str, groups: list[str]) -> str:
    reason = f"has the labels {selector}; is in {'group' if len(groups) == 1 else 'groups'} {', '.join(groups)}"
    return reason if len(reason) <= MAX_REASON_CHARS else reason[: MAX_REASON_CHARS - 1] + "…"


def why_nobody(selector: LabelSelector, allowed_groups: Collection[str], choice: Choice) -> str:
    """One sentence on why a choice is empty (DEP-10, DEP-16)."""
    if not allowed_groups:
        return "allowedGroups is empty, so no device matches; name at least one group in spec.allowedGroups"
    if not choice.labelled:
        return f"No device has the labels {labels.explain(selector)}"
    have = "1 device has" if choice.labelled == 1 else f"{choice.labelled} devices have"
    word = "group" if len(allowed_groups) == 1 else "groups"
    negation = "it is not" if choice.labelled == 1 else "none is"
    return f"{have} the labels, {negation} in the {word} {', '.join(sorted(allowed_groups))}"


@dataclass(frozen=True, slots=True)
class Count:
    """Targets by where they stand; ``waiting`` are released and neither converged nor failed."""

    held: int = 0
    waiting: int = 0
    converged: int = 0
    failed: int = 0
    ended: int = 0

    @property
    def total(self) -> int:
        return self.held + self.waiting + self.converged + self.failed + self.ended

    def __add__(self, other: Count) -> Count:
        return Count(
            self.held + other.held,
            self.waiting + other.waiting,
            self.converged + other.converged,
            self.failed + other.failed,
            self.ended + other.ended,
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """A frozen set, counted at one instant.

    ``proven`` are the canaries that are converged by a report which is fresh and the newest we received (DEP-11).
    ``opened`` says that the rest was released already.
    """

    canaries: Count = field(default_factory=Count)
    rest: Count = field(default_factory=Count)
    proven: int = 0
    told: int = 0
    offline: int = 0
    opened: bool = False

    @property
    def all(self) -> Count:
        return self.canaries + self.rest


def gate_is_open(tally: Tally) -> bool:
    """Whether the devices that are no canaries may be told (DEP-11, DEP-12).

    Every frozen canary must be proven at this instant. A set without canaries has nothing to wait for; an empty set
    is no evidence of anything.
    """
    if not tally.canaries.total:
        return tally.rest.total > 0
    return tally.canaries.failed == 0 and tally.proven == tally.canaries.total


class Verdict(Enum):
    """Where a frozen set stands as a whole."""

    TRYING_CANARIES = "trying canaries"
    SPREADING = "spreading"
    CONVERGED = "converged"
    FAILED = "failed"


def verdict(tally: Tally) -> Verdict:
    """One word for the set: failed when a canary is, or when everybody settled and somebody failed (DEP-12, DEP-15)."""
    every = tally.all
    if tally.canaries.failed:
        return Verdict.FAILED
    if not tally.opened:
        return Verdict.TRYING_CANARIES if tally.canaries.total else Verdict.SPREADING
    if every.held or every.waiting or not every.total:
        return Verdict.SPREADING
    return Verdict.FAILED if every.failed else Verdict.CONVERGED
