"""A release's archive becomes a folder, whole or not at all (UPG-3).

Root runs this on archives that nobody vouches for: each member is admitted first, and nothing is written through links.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from agent.releases.description import Release
from agent.releases.folders import ReleaseError, damage, discard, read, settle, unfinished_for
from agent.releases.members import MAX_ENTRIES, Members, most_bytes
from agent.releases.patience import Patience
from agent.releases.tar import BadArchive, Kind, Member, Tar
from agent.wire.manifest import AgentUpgrade

#: Besides the files' bytes: headers, long names, padding.
_BYTES_AROUND = 4_096
_PROGRAM = "fleet-agent"


def install(archive: Path, target: AgentUpgrade, place: Path, patience: Patience) -> str:
    """Unpack it, compare it with ``target`` and with its own ``release.json``, and put it at ``place``; why not, or
    empty. A damaged release there is replaced, and nothing else than whole ones ever has that name.

    Raises:
        OSError: the disk is full, or does not do it for another reason.
        TooSlow: it took longer than it may.
    """
    unfinished = unfinished_for(place)
    discard(unfinished)
    try:
        unfinished.mkdir(mode=0o700)
        with archive.open("rb") as file:
            unpack(file, unfinished, most_bytes(target.maxSize), patience)
        release = _only_folder(unfinished)
        if problem := _problem(release, target, patience):
            return problem
        settle(release, place)
    except BadArchive as error:
        return str(error)
    finally:
        discard(unfinished)
    return ""


def unpack(archive: BinaryIO, folder: Path, most: int, patience: Patience) -> None:
    """Write what a ``.tar.gz`` holds below an empty folder; ``most`` bytes of files in all.

    Raises:
        BadArchive: it is damaged, or has what no release may have.
        OSError: the disk is full, or does not do it for another reason.
        TooSlow: it took longer than it may.
    """
    tar = Tar(_Unzipped(archive, most + MAX_ENTRIES * _BYTES_AROUND, patience))
    members = Members(most)
    for member in tar:
        _make(folder, members.admit(member), member, tar)


def matches(release: Release, target: AgentUpgrade) -> str:
    """In what a release differs from the one that is wanted; empty when it is that one."""
    if release.version != target.version:
        return f"the archive is of version {release.version}, and the target's is {target.version}"
    if release.architecture != target.architecture:
        return f"the archive is for {release.architecture}, and the target is for {target.architecture}"
    return ""


class _Unzipped:
    """What gzip gives, never more than ``most`` bytes of it."""

    def __init__(self, archive: BinaryIO, most: int, patience: Patience) -> None:
        self._stream = gzip.GzipFile(fileobj=archive, mode="rb")
        self._left = most
        self._patience = patience

    def read(self, size: int, /) -> bytes:
        self._patience.check()
        try:
            data = self._stream.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise BadArchive("the archive is cut off or damaged, or not compressed by gzip") from None
        self._left -= len(data)
        if self._left < 0:
            raise BadArchive("the archive holds more bytes unpacked than it may")
        return data


def _make(folder: Path, path: PurePosixPath, member: Member, tar: Tar) -> None:
    there = folder / path
    if member.kind is Kind.FOLDER:
        there.mkdir(parents=True, exist_ok=True)
        return
    there.parent.mkdir(parents=True, exist_ok=True)
    if member.kind is Kind.LINK:
        there.symlink_to(member.target)
        return
    mode = 0o700 if member.mode & 0o100 else 0o600
    with os.fdopen(os.open(there, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
        for data in tar.content():
            file.write(data)


def _only_folder(unpacked: Path) -> Path:
    """Most archives have one folder with everything in it, so that nobody unpacks them all over his own."""
    entries = list(unpacked.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink() else unpacked


def _problem(folder: Path, target: AgentUpgrade, patience: Patience) -> str:
    try:
        release = read(folder)
    except ReleaseError as error:
        return f"the archive holds no release: {str(error).replace(f'{folder}/', '')}"
    if problem := matches(release, target):
        return problem
    if _PROGRAM not in release.files:
        return f"the archive holds no release: it lists no {_PROGRAM}"
    if problem := damage(folder, release, patience):
        return f"the archive does not hold what its release.json says: {problem.replace(f'{folder}/', '')}"
    return ""
