"""What a test needs from the operating system. Missing on a developer's machine: skipped and listed at the end of the
run. Missing where ``CI=true``: failed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from harness.programs import ProgramMissing, program

_missing: set[str] = set()


def need(*programs: str) -> list[Path]:
    """The paths of these programs; ends the test when one is not installed."""
    try:
        return [program(name) for name in programs]
    except ProgramMissing as error:
        cannot(str(error))


def need_root(why: str) -> None:
    """Ends the test when we are not root."""
    if os.geteuid() != 0:
        cannot(f"root is needed: {why}")


def cannot(why: str) -> NoReturn:
    """End the test because this machine lacks something."""
    _missing.add(why)
    if os.environ.get("CI") == "true":
        pytest.fail(f"{why} (with CI=true every test has to run)", pytrace=False)
    pytest.skip(why)


def note(lines: Iterable[str]) -> None:
    """What was missing in another process of this run."""
    _missing.update(lines)


def missing() -> Iterable[str]:
    """What was missing so far, once each."""
    return sorted(_missing)
