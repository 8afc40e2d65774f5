"""The release that setup was started from."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from agent.facts import ARCHITECTURES
from agent.releases import folders
from agent.releases.description import Release
from agent.releases.folders import ReleaseError


class SetupError(Exception):
    """Setup can't go on; the message says what was found, what is allowed and what to do."""


def folder() -> Path:
    """Where the running executable's release lies.

    Raises:
        SetupError: it is run from source.
    """
    if not getattr(sys, "frozen", False):
        raise SetupError("setup runs from an unpacked release only; build one with: make agent-release")
    return Path(sys.executable).resolve().parent


def read(where: Path) -> Release:
    """The description of the whole release in that folder, for this machine's architecture.

    Raises:
        SetupError: it is missing, unreadable or damaged, or for another architecture (U7).
    """
    try:
        release = folders.read(where)
    except ReleaseError as error:
        raise SetupError(f"{error}; unpack the release again") from None
    machine = platform.machine()
    if release.architecture != ARCHITECTURES.get(machine, machine):
        raise SetupError(
            f"this release is for {release.architecture}, and this machine is {machine}; take the other one"
        )
    if damage := folders.damage(where, release):
        raise SetupError(f"the unpacked release is damaged: {damage}; unpack it again into an empty folder")
    return release
