"""What may be in a release's archive (UPG-3), decided before anything of a member is written. Pure."""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath

from agent.releases.tar import BadArchive, Kind, Member

MAX_ENTRIES = 20_000
MAX_BYTES = 2_147_483_648
#: How many times larger a release may be than its archive.
MAX_GROWTH = 8
_ALLOWED = (Kind.FILE, Kind.FOLDER, Kind.LINK)
_SET_ID = 0o6000
_MAX_NAME, _MAX_PATH = 255, 1024


def most_bytes(max_size: int) -> int:
    """What an archive of at most ``max_size`` bytes may hold unpacked, in bytes."""
    return min(MAX_GROWTH * max_size, MAX_BYTES)


class Members:
    """Admits one member after the other, and remembers what stands where."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._kinds: dict[PurePosixPath, Kind] = {}

    def admit(self, member: Member) -> PurePosixPath:
        """Where it goes, below the folder that is unpacked to; ``.`` is that folder itself.

        Raises:
            BadArchive: it may not be in a release, or the archive has too much of it.
        """
        if member.kind not in _ALLOWED:
            raise BadArchive(f"{member.name!r} in the archive is {member.kind}; allowed: files, folders and links")
        if member.mode & _SET_ID:
            raise BadArchive(f"{member.name!r} in the archive has a set-id bit ({member.mode:04o})")
        path = _path(member.name)
        self._find_room(path, member)
        self._bytes += member.size
        if self._bytes > self._most:
            raise BadArchive(f"the archive holds more than {self._most:,} bytes unpacked")
        if member.kind is Kind.LINK:
            _look_at_target(path, member)
        return path

    def _find_room(self, path: PurePosixPath, member: Member) -> None:
        """Nothing is written over, and nothing through a link."""
        folders = [path, *path.parents] if member.kind is Kind.FOLDER else path.parents
        for folder in folders:
            if self._kinds.setdefault(folder, Kind.FOLDER) is not Kind.FOLDER:
                raise BadArchive(f"{member.name!r} in the archive meets {str(folder)!r}, which is no folder")
        if member.kind is not Kind.FOLDER:
            if path in self._kinds or not path.parts:
                raise BadArchive(f"{member.name!r} is twice in the archive")
            self._kinds[path] = member.kind
        if len(self._kinds) > MAX_ENTRIES:
            raise BadArchive(f"the archive has more than {MAX_ENTRIES:,} files, folders and links")


def _path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute():
        raise BadArchive(f"{name!r} in the archive is an absolute path")
    if ".." in path.parts:
        raise BadArchive(f"{name!r} in the archive leads out of it")
    if not name.isprintable() or len(name.encode()) > _MAX_PATH:
        raise BadArchive(f"{name[:100]!r} in the archive is no name of a file")
    if any(len(part.encode()) > _MAX_NAME for part in path.parts):
        raise BadArchive(f"{name[:100]!r}… in the archive has a part of more than {_MAX_NAME} bytes")
    return path


def _look_at_target(path: PurePosixPath, member: Member) -> None:
    """By its words only; where it leads through other links is seen when all are there."""
    if not member.target.isprintable():
        raise BadArchive(f"{member.name!r} in the archive links to {member.target[:100]!r}, which is no path")
    ends_at = posixpath.normpath(posixpath.join(path.parent, member.target))
    if not member.target or member.target.startswith("/") or ends_at.split("/")[0] == "..":
        raise BadArchive(f"{member.name!r} in the archive links to {member.target!r}, outside of it")
