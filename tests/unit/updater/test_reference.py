"""docs/reference/updater.md shows what the updater really does and takes."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from agent.updater.cli import main
from agent.updater.config import Config
from agent.updater.requirements import LEAST_BYTES, PROTECTED
from agent.updater.server import MOST_CONNECTIONS_PER_USER, TIME_LIMIT_SECONDS
from agent.updater.steps import MOST_BOOTS_IN_VERIFY, MOST_REBOOTS, MOST_STARTS, STEPS
from agent.updater.store import MOST_ATTEMPTS
from agent.wire.messages import AttemptState
from agent.wire.updater import MAX_REQUEST_BYTES

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "updater.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.search(r"^\| -+ \|.*\n((?:\|.*\n)+)", section, flags=re.M)
    assert lines, heading
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1].splitlines()]


@pytest.mark.parametrize("command", [[], ["journal"]])
def test_help_is_shown_as_it_is(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert f"```text\n{capsys.readouterr().out}```" in PAGE


@pytest.mark.clause("SYS-1")
def test_steps_and_limits_are_those_of_the_code() -> None:
    limits = {
        name: "none" if step.limit_seconds is None else f"{step.limit_seconds:,.0f} s" for name, step in STEPS.items()
    }
    assert [(row[0], row[1]) for row in rows("Steps of a system upgrade")] == [
        (f"`{name}`", limit) for name, limit in limits.items()
    ]


@pytest.mark.clause("SYS-5")
def test_recovery_is_that_of_the_code() -> None:
    assert rows("After a crash") == [[f"`{name}`", step.recovery] for name, step in STEPS.items()]


def test_every_state_is_explained() -> None:
    expected = [f"`{state}`" for state in AttemptState if state is not AttemptState.REFUSED]  # the agent's word only
    assert [row[0] for row in rows("States")] == expected


def test_every_key_is_listed_with_its_default() -> None:
    shown = {row[0]: row[1] for row in rows("Configuration")}
    for table in msgspec.structs.fields(Config):
        for key in msgspec.structs.fields(table.type):
            assert shown.pop(f"`{table.name}.{key.name}`") == (f"`{key.default}`" if key.default else "")
    assert shown == {}


@pytest.mark.clause("SYS-2")
def test_numbers_and_names_are_those_of_the_code() -> None:
    words = " ".join(PAGE.split())
    for sentence in (
        f"again after 10 minutes, {MOST_REBOOTS} times in all",
        f"apt is started again, up to {MOST_STARTS} times in all",
        f"A device that starts anew {MOST_BOOTS_IN_VERIFY} times",
        f"The newest {MOST_ATTEMPTS} attempts",
        f"{LEAST_BYTES['/'] // 1_000_000} MB free on `/` and {LEAST_BYTES['/var'] // 1_000_000} MB on `/var`",
        ", ".join(f"`{name}`" for name in PROTECTED),
        f"at most {MAX_REQUEST_BYTES:,} bytes and a conversation {TIME_LIMIT_SECONDS:g} seconds",
        f"of more than {MOST_CONNECTIONS_PER_USER} connections",
    ):
        assert sentence in words, sentence
