"""Cron's five fields: minute, hour, day of the month, month, day of the week. Only whether they can ever come true."""

from __future__ import annotations

import re

#: Name and bounds of each field, in order; Sunday is 0.
FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 6),
)
_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)
EVERY_DAY, EVERY_WEEKDAY = 31, 7
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def read(text: str) -> tuple[str, str, str, str, str]:
    """The five fields.

    Raises:
        ValueError: not five of them, one that isn't a list of ``*``, ``3``, ``1-5`` with ``/2`` behind, a date that no
            year has, or days of the month and of the week: some programs take either then, and others both.
    """
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"has {len(fields)} fields; allowed: five, {', '.join(name for name, _, _ in FIELDS)}")
    values = [_values(field, *bounds) for field, bounds in zip(fields, FIELDS, strict=True)]
    if not any(min(values[2]) <= _LONGEST[month - 1] for month in values[3]):
        raise ValueError("names a day that none of its months has")
    if len(values[2]) < EVERY_DAY and len(values[4]) < EVERY_WEEKDAY:
        raise ValueError("names days of the month and days of the week; allowed: one of the two, with * as the other")
    minute, hour, day, month, weekday = fields
    return minute, hour, day, month, weekday


def _values(field: str, name: str, lowest: int, highest: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"has {part[:40]!r} as {name}; allowed: a list of *, 3, 1-5, each with /2 behind it")
        first = int(match[1]) if match[1] else lowest
        last = int(match[2]) if match[2] else first if match[1] and not match[3] else highest
        step = int(match[3]) if match[3] else 1
        if not lowest <= first <= last <= highest or step == 0:
            raise ValueError(f"has {part!r} as {name}; allowed: {lowest} to {highest}, and a step from 1")
        found.update(range(first, last + 1, step))
    return found
