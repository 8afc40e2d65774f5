"""The release that setup was started from."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from pathlib import Path

import msgspec

from agent.facts import ARCHITECTURES

DESCRIPTION = "release.json"


class SetupError(Exception):
    """Setup can't go on; the message says what was found, what is allowed and what to do."""


class Release(msgspec.Struct, frozen=True):
    """What ``release.json`` says; ``files`` are SHA-256 digests by path, ``built`` Unix seconds."""

    version: str
    architecture: str
    built: float
    files: dict[str, str]


def folder() -> Path:
    """Where the running executable's release lies.

    Raises:
        SetupError: it is run from source.
    """
    if not getattr(sys, "frozen", False):
        raise SetupError("setup runs from an unpacked release only; build one with: make agent-release")
    return Path(sys.executable).resolve().parent


def read(where: Path) -> Release:
    """The description of the release in that folder, for this machine's architecture.

    Raises:
        SetupError: it is missing or unreadable, or for another architecture (U7).
    """
    try:
        release = msgspec.json.decode((where / DESCRIPTION).read_bytes(), type=Release)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SetupError(f"{where / DESCRIPTION} cannot be read ({error}); unpack the release again") from None
    machine = platform.machine()
    if release.architecture != ARCHITECTURES.get(machine, machine):
        raise SetupError(
            f"this release is for {release.architecture}, and this machine is {machine}; take the other one"
        )
    return release


def damage(where: Path, release: Release) -> str:
    """The first file that is not as the release was built; empty when all are."""
    for name, digest in release.files.items():
        try:
            found = hashlib.sha256((where / name).read_bytes()).hexdigest()
        except OSError as error:
            return f"{name}: {error.strerror}"
        if found != digest:
            return f"{name} was changed"
    return ""


def install(source: Path, target: Path) -> None:
    """Copy a release so that ``target`` is whole or not there; one that was damaged is replaced."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(source, unfinished, symlinks=True)
    for path in (unfinished, *unfinished.rglob("*")):
        if not path.is_symlink():
            os.chown(path, 0, 0)
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    os.sync()  # the files before the name that says they are there
    if target.exists():
        damaged = target.with_name(f".{target.name}.damaged")
        shutil.rmtree(damaged, ignore_errors=True)
        target.rename(damaged)
    unfinished.rename(target)
    shutil.rmtree(target.with_name(f".{target.name}.damaged"), ignore_errors=True)
