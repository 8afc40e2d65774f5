"""How the agent writes things for people. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

#: What switches a terminal's colours and moves its cursor (ECMA-48 control sequences).
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def utc(seconds: float) -> str:
    """Unix seconds as people read them: ``2026-12-01 14:02:03 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def printable(text: str, *, keep: str = "\n") -> str:
    """Text that does nothing to a terminal or a page: ``�`` in place of what cannot be printed, except ``keep``."""
    return "".join(char if char.isprintable() or char in keep else "�" for char in text)


def without_colours(text: str) -> str:
    """A program's words without the sequences that are meant for its own terminal; lines end in one character."""
    return _TERMINAL_SEQUENCE.sub("", text).replace("\r\n", "\n")


def duration(seconds: float) -> str:
    """Whole minutes, or seconds below two of them: ``10 minutes``, ``90 seconds``."""
    return f"{int(seconds // 60)} minutes" if seconds >= 120 else f"{seconds:g} seconds"
