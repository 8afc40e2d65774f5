"""A journal told as a list of steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from agent.updater.binary import steps as binary
from agent.updater.steps import STEPS
from agent.wire.updater import AGENT_UPGRADE_V1, SYSTEM_UPGRADE_V1
from upgrades import policy
from upgrades.policy import BROKEN_OFF, DONE, STEP_FAILED, UNDER_WAY, passages

pytestmark = pytest.mark.clause("TSK-8")
START = datetime(2026, 12, 1, 14, 0, tzinfo=UTC)


@dataclass
class Entry:
    step: str
    event: str
    at: datetime | None = START
    boot_id: str = ""
    message: str = ""


def _outcomes(*lines: tuple[str, str], is_over: bool = True) -> list[tuple[str, str]]:
    found = passages([Entry(step, event) for step, event in lines], is_over=is_over)
    return [(each.step, each.outcome) for each in found]


def test_the_steps_are_those_of_the_updater() -> None:
    assert tuple(STEPS) == policy.SEQUENCES[SYSTEM_UPGRADE_V1]
    *way, restore = binary.STEPS
    assert (tuple(way), restore) == (policy.SEQUENCES[AGENT_UPGRADE_V1], binary.RESTORE)


@pytest.mark.parametrize(
    ("lines", "is_over", "outcomes"),
    [
        ([], True, []),
        ([("update", "began"), ("update", "ended")], False, [DONE]),
        ([("update", "began")], False, [UNDER_WAY]),
        ([("update", "began"), ("update", "noted")], False, [UNDER_WAY]),
        ([("update", "began")], True, [BROKEN_OFF]),
        ([("update", "began"), ("verify", "ended")], True, [BROKEN_OFF, DONE]),
        ([("accepted", "noted"), ("preflight", "failed")], True, [DONE, STEP_FAILED]),
        (
            [("upgrade", "began"), ("upgrade", "failed"), ("repair", "began"), ("repair", "ended")],
            True,
            [STEP_FAILED, DONE],
        ),
        ([("upgrade", "began"), ("audit", "ended"), ("upgrade", "ended")], True, [BROKEN_OFF, DONE, DONE]),
        ([("upgrade", "nobody knows this word")], True, [DONE]),
    ],
)
def test_how_each_step_went(lines: list[tuple[str, str]], is_over: bool, outcomes: list[str]) -> None:
    assert [outcome for _, outcome in _outcomes(*lines, is_over=is_over)] == outcomes


def test_a_boot_is_marked_once_where_it_was_noticed() -> None:
    boots = ["", "a", "a", "", "b", "b", "a"]
    found = passages([Entry("reboot", "noted", boot_id=boot) for boot in boots], is_over=True)
    assert [each.booted for each in found[0].told] == [False, False, False, False, True, False, True]


@pytest.mark.parametrize(
    ("first", "last", "lasted"),
    [
        (START, START + timedelta(seconds=90), timedelta(seconds=90)),
        (START, START - timedelta(seconds=1), None),  # the clock was set back meanwhile
        (None, START, None),
        (START, None, None),
    ],
)
def test_how_long_a_step_took_by_the_devices_own_clock(
    first: datetime | None, last: datetime | None, lasted: timedelta | None
) -> None:
    (found,) = passages([Entry("upgrade", "began", first), Entry("upgrade", "ended", last)], is_over=True)
    assert found.lasted == lasted
    assert found.began_at == first
