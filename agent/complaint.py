"""What is said about a wrong configuration: line, the key as it is written in the file, and what is allowed (AGT-13).

msgspec says what is wrong and roughly where; it leaves out keys of tables whose keys are free, such as
``[registries."registry.example.com:5000"]``. Which of them is meant is found by trying each alone.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

Path = tuple[str, ...]
#: Raises ``msgspec.ValidationError`` for a wrong file.
Check = Callable[[dict[str, Any]], object]

_ANY_KEY = "[...]"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def complaint(error: str, raw: dict[str, Any], text: str, check: Check, type_: type[msgspec.Struct]) -> str:
    """msgspec's sentence as one of ours, such as ``line 9: agent.pol_seconds: unknown key; did you mean …``.

    ``raw`` is the parsed ``text``, ``check`` what refused it, ``type_`` what it should have been.
    """
    said, _, place = error.partition(" - at `")
    path = _concrete(_path(place), error, raw, check)
    unknown = re.search(r"unknown field `(.*?)`", said)
    if unknown:
        known = _known_keys(type_, path)
        close = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f'; did you mean "{close[0]}"?' if close else f"; allowed: {', '.join(known)}"
        return at(text, (*path, unknown[1]), f"unknown key{hint}")
    missing = re.search(r"missing required field `(.*?)`", said)
    if missing:
        return f"{_line(text, path)}{_written((*path, missing[1]))} is missing"
    if place.startswith("key"):
        return at(text, path, f"is not a key that fits; {_allowed(said)}")
    return at(text, path, f"{_found(raw, path)}; {_allowed(said)}")


def at(text: str, path: Path, message: str) -> str:
    """A message about a key, with the line that it is on."""
    return f"{_line(text, path)}{_written(path)}: {message}" if path else message


def _path(place: str) -> Path:
    """``key` in `$.device.labels`` or ``$.agent.poll_seconds`` as keys, without list positions."""
    kind, _, rest = place.rpartition("$")
    parts = re.findall(r"\[\.\.\.\]|[^.\[\]`]+", re.sub(r"\[\d+\]", "", rest))
    return (*parts, _ANY_KEY) if kind.startswith("key") else tuple(parts)


def _concrete(path: Path, error: str, raw: dict[str, Any], check: Check) -> Path:
    """The path with the key that is meant in place of ``[...]``: the one which alone causes the same error."""
    if _ANY_KEY not in path:
        return path
    place = path.index(_ANY_KEY)
    above = path[:place]
    table = _value(raw, above)
    for key, value in table.items() if isinstance(table, dict) else ():
        try:
            check(_with(raw, above, {key: value}))
        except msgspec.ValidationError as alone:
            if str(alone) == error:
                return _concrete((*above, key, *path[place + 1 :]), error, raw, check)
    return above


def _with(raw: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    if not path:
        return dict(value)
    return {**raw, path[0]: _with(raw[path[0]], path[1:], value)}


def _value(raw: Any, path: Path) -> Any:
    for part in path:
        raw = raw.get(part) if isinstance(raw, dict) else raw
    return raw


def _found(raw: dict[str, Any], path: Path) -> str:
    """What stands there, unless it is, or may hold, a password that somebody wrote into the wrong place."""
    if "password" in path:
        return "is not shown here"
    return "is " + re.sub(r"^(['\"]?(\w+://)?).*@", r"\1…@", repr(_value(raw, path)))


def _allowed(said: str) -> str:
    found = re.fullmatch(r"Expected `(.*?)`(?:, got `.*`)?", said)
    if found:
        return f"allowed: {found[1].replace('object', 'a table')}"
    pattern = re.fullmatch(r"Expected `str` matching regex (['\"])(.*)\1", said)
    return f"allowed: text like {pattern[2]}" if pattern else said.replace("Expected", "allowed:")


def _known_keys(type_: Any, path: Path) -> list[str]:
    for part in path:
        if typing.get_origin(type_) is dict:
            type_ = typing.get_args(type_)[1]
        else:
            type_ = next(f.type for f in msgspec.structs.fields(type_) if f.name == part)
    return [f.name for f in msgspec.structs.fields(type_)]


def _written(path: Path) -> str:
    """A dotted key as TOML has it: ``registries."registry.example.com:5000".username``."""
    return ".".join(key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path)


def _line(text: str, path: Path) -> str:
    """The line of a key, or else of the table that it belongs to; empty when neither is written."""
    best = 0
    for number, written in _written_keys(text):
        if written == path[: len(written)] and written:
            best = number
        if written == path:
            break
    return f"line {best}: " if best else ""


def _written_keys(text: str) -> Iterator[tuple[int, Path]]:
    """Every line that opens a table or sets a key, with the whole path of it."""
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[(.*)\]\s*(#.*)?$", line)
        if header:
            table = _keys(header[1]) or table
            yield number, table
        elif "=" in line and (keys := _keys(line.partition("=")[0])):
            yield number, (*table, *keys)


def _keys(written: str) -> Path:
    """``a."b.c"`` as its parts, read by the TOML parser itself; empty when it is no key."""
    try:
        value: Any = tomllib.loads(f"{written} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    found: list[str] = []
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        found.append(key)
    return tuple(found)
