"""How objects look: tables for people, YAML, JSON and names for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import yaml
from rich.console import Console

#: What a device or a person wrote must not steer the terminal.
_UNPRINTABLE = {code: "�" for code in [*range(32), *range(127, 160)] if code not in (9, 10)}
#: JSON itself escapes those below 32 only.
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in range(127, 160)}


class Format(StrEnum):
    TABLE = "table"
    YAML = "yaml"
    JSON = "json"
    NAME = "name"


def plain(text: object) -> str:
    """Text without control characters."""
    return str(text).translate(_UNPRINTABLE)


def say(text: object = "") -> None:
    """A line to standard output."""
    print(plain(text), flush=True)


def warn(text: object) -> None:
    """A line to standard error."""
    print(plain(text), file=sys.stderr, flush=True)


def console() -> Console:
    """A terminal, or a stream without any escape code."""
    return Console(highlight=False, markup=False, emoji=False)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of aligned columns, as kubectl's: nothing is cut, so that programs can read them too."""
    cells = [list(heads), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _cell(value: object) -> str:
    return " ".join(plain(value).split()) if value not in (None, "") else "-"


def show(
    objects: list[dict[str, Any]],
    form: Format,
    *,
    heads: Sequence[str],
    row: Callable[[dict[str, Any]], Sequence[object]],
    name: Callable[[dict[str, Any]], str],
    alone: bool = False,
) -> None:
    """Print objects in this format; ``alone`` means that one was asked for by name."""
    whole: Any = objects[0] if alone else {"apiVersion": "v1", "kind": "List", "items": objects}
    if form is Format.JSON:
        print(json.dumps(whole, indent=2, ensure_ascii=False).translate(_JSON_ESCAPES))
    elif form is Format.YAML:
        print(yaml.safe_dump(whole, sort_keys=False, allow_unicode=True), end="")
    elif form is Format.NAME:
        for each in objects:
            say(name(each))
    else:
        for line in table(heads, (row(each) for each in objects)):
            say(line)
        if not objects:
            warn("nothing found")


def moment(at: str | None) -> str:
    """``2026-12-01 14:02 UTC`` from the server's time stamp."""
    if not at:
        return "-"
    return f"{_parsed(at):%Y-%m-%d %H:%M:%S} UTC"


def _parsed(at: str) -> datetime:
    return datetime.fromisoformat(at).astimezone(UTC)
