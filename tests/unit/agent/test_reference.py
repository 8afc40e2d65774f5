"""docs/reference/agent.md shows what the program really says and takes."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from agent.cli import main
from agent.config import Config
from agent.runtime.simulated import Faults

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "agent.md").read_text()


@pytest.mark.parametrize("command", [[], ["enroll"], ["status"]])
def test_help_is_shown_as_it_is(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert f"```text\n{capsys.readouterr().out}```" in PAGE


def test_every_key_is_listed_with_its_default():
    section = PAGE.partition("## Configuration")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| (.+?) \|", section, flags=re.M))
    keys = {
        f"{table.name}.{key.name}": key
        for table in msgspec.structs.fields(Config)
        for key in msgspec.structs.fields(table.type)
    }
    assert rows.keys() == keys.keys()
    for name, key in keys.items():
        if isinstance(key.default, int | float) or (isinstance(key.default, str) and key.default):
            shown = f"{key.default:g}" if isinstance(key.default, float) else f"`{key.default}`"
            assert rows[name] == shown, name


def test_every_fault_of_the_simulation_is_named():
    for fault in Faults.__struct_fields__:
        assert f"`{fault}" in PAGE, fault


def test_every_problem_is_listed():
    sources = "\n".join(path.read_text() for path in (Path(__file__).parents[3] / "agent").rglob("*.py"))
    reasons = set(re.findall(r'^[A-Z_]+ = "([A-Z][a-z]+[A-Za-z]+)"', sources, flags=re.M))
    reasons |= set(re.findall(r'Problem\(reason="([A-Za-z]+)"', sources))
    assert reasons - {"PodmanV0"} == set(re.findall(r"`([A-Z][A-Za-z]+)`", PAGE.partition("## Problems")[2]))
