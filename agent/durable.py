"""Files that are either the old or the new ones after a power cut, never half of each."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

PRIVATE = 0o600
_RANDOM_BYTES = 4
_TEMPORARY = f".*.{'[0-9a-f]' * 2 * _RANDOM_BYTES}"


def write(path: Path, data: bytes, *, mode: int = PRIVATE, sync: bool = True) -> None:
    """Replace ``path`` atomically: write beside it, flush to disk, rename, flush the folder.

    ``sync=False`` is for what may be lost: still whole, but perhaps the old one after a power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(_RANDOM_BYTES)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        _sync_folder(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove what writes left that a kill or a power loss cut short; only while nobody writes below ``folder``."""
    for temporary in folder.rglob(_TEMPORARY):
        temporary.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be used, so that a person can look at it; the newest one per name is kept."""
    aside = path.with_name(f"{path.name}.set-aside")
    path.replace(aside)
    _sync_folder(path.parent)
    return aside


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
