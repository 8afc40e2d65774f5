"""docs/reference/fleetctl.md shows what the program really takes and says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from fleet.ctl.commands.get import DEVICES
from fleet.ctl.errors import EXPLAINED
from fleet.ctl.main import app
from fleet.ctl.output import Format
from fleet.ctl.watching import Seen

pytestmark = pytest.mark.clause("API-2")
PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "fleetctl.md").read_text()


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


ROOT = typer.main.get_command(app)
COMMANDS = dict(commands(ROOT))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_listed(words: tuple[str, ...]) -> None:
    table = PAGE.partition("| command | what it does |")[2].partition("\n\n")[0].replace("\\|", " ")
    name = r"\b[^|]*\b".join(words)
    assert re.search(rf"^\| [^|]*`{name}\b", table, re.M)


@pytest.mark.parametrize("words", [(), *COMMANDS], ids=lambda words: " ".join(words) or "fleetctl")
def test_every_option_is_named(words: tuple[str, ...]) -> None:
    command = COMMANDS[words] if words else ROOT
    for option in command.params:
        if option.param_type_name == "option" and option.name != "help":
            assert any(re.search(rf"{re.escape(way)}\b", PAGE) for way in option.opts), option.opts


def test_every_exit_code_is_explained_as_help_does() -> None:
    section = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    assert dict(re.findall(r"^\| (\d) \| (.+) \|$", section, re.M)) == {
        str(code.value): meaning for code, meaning in EXPLAINED.items()
    }


def test_every_format_is_named() -> None:
    assert "`-o " + "\\|".join(Format) + "`" in PAGE


def test_examples_have_the_heads_and_words_that_are_printed() -> None:
    assert re.search(r"^" + r" +".join(DEVICES.heads) + "$", PAGE, re.M)
    counts = {"matched": 3, "released": 1, "converged": 0, "failed": 0, "offline": 0}
    assert Seen(1, {"phase": "Canary", "counts": counts}).progress + ". Waiting for canary edge-1" in PAGE
