"""Releases as folders: read, compared with what they say of themselves, and put in their place whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent.releases.description import DESCRIPTION, Release
from agent.releases.patience import Patience

#: A description of as many files as an archive may have.
_MOST_DESCRIPTION = 4_194_304


class ReleaseError(Exception):
    """There is no release that can be used; the message is a sentence."""


def read(where: Path) -> Release:
    """The description of the release in that folder.

    Raises:
        ReleaseError: it is missing or unreadable.
    """
    path = where / DESCRIPTION
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise ReleaseError(f"{path} is no file")
        with path.open("rb") as file:
            data = file.read(_MOST_DESCRIPTION + 1)
        if len(data) > _MOST_DESCRIPTION:
            raise ReleaseError(f"{path} is larger than {_MOST_DESCRIPTION:,} bytes")
        return msgspec.json.decode(data, type=Release)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ReleaseError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from None


def damage(where: Path, release: Release, patience: Patience | None = None) -> str:
    """The first file that is not as the release was built, or that it does not list; empty when it is whole (UPG-7).

    Raises:
        TooSlow: it took longer than it may.
    """
    patience = patience or Patience()
    try:
        return _unlike_description(where, release) or _changed(where, release, patience)
    except OSError as error:
        return f"{error.filename or where}: {error.strerror}"


def digest_of(path: Path, patience: Patience) -> str:
    """SHA-256 of a file, in hexadecimal. Raises OSError and TooSlow."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(1_048_576):
            patience.check()
            found.update(data)
    return found.hexdigest()


def copy(source: Path, target: Path) -> None:
    """Copy a release so that ``target`` is whole or not there; one that was damaged is replaced. Raises OSError."""
    unfinished = unfinished_for(target)
    discard(unfinished)
    shutil.copytree(source, unfinished, symlinks=True)
    settle(unfinished, target)


def unfinished_for(target: Path) -> Path:
    """Where a release is put together before it is whole."""
    return target.with_name(f".{target.name}.unfinished")


def settle(whole: Path, target: Path) -> None:
    """Flush a release to the disk, and then give it its name. What stands there already is replaced. Raises OSError."""
    for path in (whole, *_below(whole)):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            flush(path)
    damaged = target.with_name(f".{target.name}.damaged")
    discard(damaged)
    if os.path.lexists(target):
        target.rename(damaged)
    whole.rename(target)
    flush(target.parent)
    discard(damaged)


def discard(path: Path) -> None:
    """Remove what stands there, if anything. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _below(where: Path) -> Iterator[Path]:
    """All that is there; no link is followed."""
    for folder, folders, files in os.walk(where, onerror=_raise):
        yield from (Path(folder, name) for name in sorted(folders + files))


def _raise(error: OSError) -> None:
    raise error


def _unlike_description(where: Path, release: Release) -> str:
    modes = {path.relative_to(where).as_posix(): path.lstat().st_mode for path in _below(where)}
    files = {name for name, mode in modes.items() if stat.S_ISREG(mode)} - {DESCRIPTION}
    if missing := sorted(release.files.keys() - files):
        return f"{missing[0]} is missing"
    if strays := sorted(files - release.files.keys()):
        return f"{strays[0]} is not listed in {DESCRIPTION}"
    others = sorted(name for name, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)))
    return next((f"{name} {problem}" for name in others if (problem := _link_problem(where, name))), "")


def _changed(where: Path, release: Release, patience: Patience) -> str:
    for name, digest in sorted(release.files.items()):
        if digest_of(where / name, patience) != digest:
            return f"{name} was changed"
    return ""


def _link_problem(where: Path, name: str) -> str:
    """A link is an alias of what is listed; anything else that is neither file nor folder has no business here."""
    path = where / name
    if not path.is_symlink():
        return "is neither a file nor a folder nor a link"
    try:
        leads_to = Path(os.path.realpath(path, strict=True))
    except OSError:
        return "leads nowhere"
    return "" if leads_to.is_relative_to(os.path.realpath(where)) else "leads out of the release"
