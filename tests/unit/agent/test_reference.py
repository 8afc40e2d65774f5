"""docs/reference/agent.md shows what the program really says and takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_origin

import msgspec
import pytest

from agent.cli import main
from agent.config import Config
from agent.runtime.simulated import Faults

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "agent.md").read_text()


@pytest.mark.parametrize("command", [[], ["enroll"], ["setup"], ["status"]])
def test_help_is_shown_as_it_is(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert f"```text\n{capsys.readouterr().out}```" in PAGE


def test_every_key_is_listed_with_its_default():
    section = PAGE.partition("## Configuration")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z]+\.\S+)` \| (.+?) \|", section, flags=re.M))
    keys = dict(_keys())
    assert rows.keys() == keys.keys()
    for name, key in keys.items():
        if isinstance(key.default, int | float) or (isinstance(key.default, str) and key.default):
            assert rows[name] == _shown(key.default), name


def _keys() -> Iterator[tuple[str, msgspec.structs.FieldInfo]]:
    for table in msgspec.structs.fields(Config):
        is_free = get_origin(table.type) is dict
        name, type_ = (f'{table.name}."HOST"', get_args(table.type)[1]) if is_free else (table.name, table.type)
        yield from ((f"{name}.{key.name}", key) for key in msgspec.structs.fields(type_))


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else f"`{default}`"


def test_every_fault_of_the_simulation_is_named():
    for fault in Faults.__struct_fields__:
        assert f"`{fault}" in PAGE, fault


def test_every_problem_is_listed():
    sources = "\n".join(path.read_text() for path in (Path(__file__).parents[3] / "agent").rglob("*.py"))
    reasons = set(re.findall(r'^[A-Z_]+ = "([A-Z][a-z]+[A-Za-z]+)"', sources, flags=re.M))
    reasons |= set(re.findall(r'Problem\(reason="([A-Za-z]+)"', sources))
    assert reasons - {"PodmanV0"} == set(re.findall(r"`([A-Z][A-Za-z]+)`", PAGE.partition("## Problems")[2]))
