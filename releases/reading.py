"""Reads an archive as it comes in: its digest, its size, and what its ``release.json`` says. Trusts none of it."""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, cast

import msgspec

from fleet.core.errors import Invalid, TooLarge
from releases.policy import description_problem

#: A release has some 25 MB, and comes to three times that.
MAX_ARCHIVE_BYTES = 268_435_456
MAX_UNPACKED_BYTES = 2_147_483_648
MAX_ENTRIES = 20_000
MAX_DESCRIPTION_BYTES = 4_194_304
#: Of a header that only holds a long name or more of the one after it; all of it is read into memory.
MAX_EXTENDED_BYTES = 65_536
_EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, b"X")
DESCRIPTION = "release.json"
_CHUNK = 262_144


class _Description(msgspec.Struct):
    version: str = ""
    architecture: str = ""


class _Member(tarfile.TarInfo):
    """Refuses a long header before it is read, since the archive decides its size."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENDED and self.size > MAX_EXTENDED_BYTES:
            raise ValueError(f"it has a header of {self.size:,} bytes; allowed: {MAX_EXTENDED_BYTES:,}")
        return cast("tarfile.TarInfo", super()._proc_member(tar))  # type: ignore[misc]  # meant to be extended


@dataclass(frozen=True, slots=True)
class Found:
    """``size`` in bytes."""

    version: str
    architecture: str
    sha256: str
    size: int


def read(archive: IO[bytes]) -> Found:
    """What lies there; the file is read twice and stays where it is.

    Raises:
        Invalid: it is no archive of a release.
        TooLarge: it is larger than any release.
    """
    digest, size = _digest(archive)
    archive.seek(0)
    try:
        description = _description(archive)
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        raise Invalid(f"this is no .tar.gz of a release ({error}); build one with: make agent-release") from None
    if problem := description_problem(description.version, description.architecture):
        raise Invalid(f"this is no archive of a release: {problem}")
    return Found(description.version, description.architecture, digest, size)


def _digest(archive: IO[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    archive.seek(0)
    while piece := archive.read(_CHUNK):
        size += len(piece)
        if size > MAX_ARCHIVE_BYTES:
            raise TooLarge(f"the archive has more than {MAX_ARCHIVE_BYTES:,} bytes; nothing was kept")
        digest.update(piece)
    return digest.hexdigest(), size


def _description(archive: IO[bytes]) -> _Description:
    """Raises ValueError when there is none within the limits."""
    with tarfile.open(fileobj=archive, mode="r|gz", tarinfo=_Member) as tar:
        for member in _limited(tar):
            parts = member.name.removeprefix("./").split("/")
            if len(parts) == 2 and parts[1] == DESCRIPTION and member.isfile():
                return _decoded(tar, member)
    raise ValueError(f"it has no {DESCRIPTION} in its folder")


def _limited(tar: tarfile.TarFile) -> Iterable[tarfile.TarInfo]:
    unpacked = 0
    for number, member in enumerate(tar):
        unpacked += member.size
        if number >= MAX_ENTRIES or unpacked > MAX_UNPACKED_BYTES:
            raise ValueError(f"it has more than {MAX_ENTRIES:,} entries or {MAX_UNPACKED_BYTES:,} bytes unpacked")
        yield member


def _decoded(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _Description:
    if member.size > MAX_DESCRIPTION_BYTES:
        raise ValueError(f"its {DESCRIPTION} has {member.size:,} bytes; allowed: {MAX_DESCRIPTION_BYTES:,}")
    file = tar.extractfile(member)
    if file is None:
        raise ValueError(f"its {DESCRIPTION} is no file")
    try:
        return msgspec.json.decode(file.read(), type=_Description)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError(f"its {DESCRIPTION} is no description of a release") from None
