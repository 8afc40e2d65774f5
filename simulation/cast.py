"""Who has which fault: decided once, by the seed, so that a run can be repeated. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import cycle

from simulation.faults import Lie

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Knobs:
    """Shares of the devices (0 to 1) that have a fault, and how strong it is.

    Devices of ``offline`` are away for ``offline_seconds``, back for as long, and so on. ``lying`` devices take turns
    with the kinds in ``lies``. ``clock_off`` devices are ``clock_hours`` ahead or behind. On devices of
    ``failing_upgrades`` every upgrade of the operating system fails; on those of ``failing_agents`` no agent runs but
    the one that they have at first.
    """

    offline: float = 0.0
    offline_seconds: float = 60.0
    slow: float = 0.0
    slow_seconds: float = 2.0
    lying: float = 0.0
    lies: tuple[Lie, ...] = tuple(Lie)
    duplicate: float = 0.0
    reorder: float = 0.0
    clock_off: float = 0.0
    clock_hours: float = 12.0
    failing_upgrades: float = 0.0
    failing_agents: float = 0.0


@dataclass(frozen=True, slots=True)
class Character:
    """The faults of one device; ``away_from`` is where in its first period it begins, in seconds."""

    offline_seconds: float = 0.0
    away_from: float = 0.0
    slow_seconds: float = 0.0
    lie: Lie | None = None
    duplicates: bool = False
    reorders: bool = False
    clock_seconds: float = 0.0
    fails_upgrades: bool = False
    fails_agents: bool = False

    def is_offline(self, now: float) -> bool:
        """Whether it is away at ``now``, on any clock that does not jump."""
        period = 2 * self.offline_seconds
        return bool(period) and (now + self.away_from) % period < self.offline_seconds

    @property
    def is_honest(self) -> bool:
        return self.lie is None


def cast(count: int, knobs: Knobs, seed: int) -> list[Character]:
    """The characters of ``count`` devices: exactly the shares, rounded, each fault drawn by itself."""
    dice = random.Random(seed)  # noqa: S311  (repeatable, not secret)

    def some(share: float) -> set[int]:
        return set(dice.sample(range(count), round(share * count)))

    offline, slow = some(knobs.offline), some(knobs.slow)
    liars = dict(zip(sorted(some(knobs.lying)), cycle(knobs.lies), strict=False))
    duplicating, reordering, wrong = some(knobs.duplicate), some(knobs.reorder), some(knobs.clock_off)
    failing, unfit = some(knobs.failing_upgrades), some(knobs.failing_agents)
    return [
        Character(
            offline_seconds=knobs.offline_seconds if number in offline else 0.0,
            away_from=dice.uniform(0, 2 * knobs.offline_seconds),
            slow_seconds=knobs.slow_seconds if number in slow else 0.0,
            lie=liars.get(number),
            duplicates=number in duplicating,
            reorders=number in reordering,
            clock_seconds=dice.choice((-1, 1)) * knobs.clock_hours * HOUR if number in wrong else 0.0,
            fails_upgrades=number in failing,
            fails_agents=number in unfit,
        )
        for number in range(count)
    ]
