"""docs/design/fleet-agent-upgrades.md shows the steps, limits and rules that the code has (UPG-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.updater.binary.needs import UNPACKED
from agent.updater.binary.steps import MOST_BEGINNINGS, MOST_RESTARTS, STEADY_SECONDS, STEPS
from agent.wire.messages import AttemptState

PAGE = (Path(__file__).parents[3] / "docs" / "design" / "fleet-agent-upgrades.md").read_text()


@pytest.mark.clause("UPG-5")
def test_the_table_of_steps_is_that_of_the_code() -> None:
    rows = [f"| `{step.name}` | {step.limit_seconds:,.0f} s | {step.recovery} |" for step in STEPS.values()]
    table = PAGE.partition("<!-- steps -->")[2].partition("<!-- /steps -->")[0]
    assert table.strip().splitlines()[2:] == rows


@pytest.mark.clause("UPG-5")
@pytest.mark.parametrize("step", STEPS)
def test_each_step_is_told_in_its_order(step: str) -> None:
    number = list(STEPS).index(step) + 1
    assert f"\n{number}. **{step}**" in PAGE


@pytest.mark.clause("UPG-5")
def test_each_end_is_in_the_table_for_three_in_the_morning() -> None:
    table = PAGE.partition("## At 3 am")[2].partition("\n## ")[0]
    for state in (AttemptState.ACCEPTED, AttemptState.RUNNING, AttemptState.FAILED, AttemptState.ROLLBACK_FAILED):
        assert f"`{state}`" in table


@pytest.mark.clause("UPG-5")
def test_numbers_are_those_of_the_code() -> None:
    words = " ".join(PAGE.split())
    for sentence in (
        f"at most {['', 'one', 'two', 'three'][MOST_BEGINNINGS]} times each",
        f"{['', 'One', 'Two', 'Three'][MOST_RESTARTS]} restarts of the unit end the wait early",
        f"stay up for {'ten' if STEADY_SECONDS == 10 else STEADY_SECONDS} seconds without a restart",
        f"the archive twice and for {['', '', '', '', 'four'][UNPACKED]} times its size unpacked",
    ):
        assert sentence in words, sentence
