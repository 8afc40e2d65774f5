"""Who has which fault: the shares are exact, and the seed decides."""

from __future__ import annotations

from simulation.cast import Character, Knobs, cast
from simulation.faults import Lie

KNOBS = Knobs(offline=0.25, slow=0.1, lying=0.15, duplicate=0.5, reorder=1.0, clock_off=0.2, clock_hours=3)


def test_shares_are_exact() -> None:
    characters = cast(40, KNOBS, seed=7)
    assert sum(bool(c.offline_seconds) for c in characters) == 10
    assert sum(bool(c.slow_seconds) for c in characters) == 4
    assert sorted(c.lie for c in characters if c.lie) == sorted([*Lie, *Lie])
    assert sum(c.duplicates for c in characters) == 20
    assert all(c.reorders for c in characters)
    assert {abs(c.clock_seconds) for c in characters} == {0, 3 * 3600}


def test_the_seed_decides() -> None:
    assert cast(40, KNOBS, seed=7) == cast(40, KNOBS, seed=7)
    assert cast(40, KNOBS, seed=7) != cast(40, KNOBS, seed=8)


def test_without_knobs_nobody_has_a_fault() -> None:
    assert not any(c.offline_seconds or c.slow_seconds or c.lie or c.clock_seconds for c in cast(9, Knobs(), seed=1))


def test_an_offline_device_is_away_and_back_for_as_long() -> None:
    away = Character(offline_seconds=60, away_from=30)
    assert [away.is_offline(now) for now in (0, 29, 30, 89, 90, 149, 150)] == [
        True,
        True,
        False,
        False,
        True,
        True,
        False,
    ]
    assert not any(Character(away_from=30).is_offline(now) for now in range(0, 300, 10))
