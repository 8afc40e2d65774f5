"""Reads what a release's archive may be: an uncompressed tar of files, folders and links, front to back.

Root reads archives that an attacker may have made. So this knows as little of tar as releases need: whatever else is in
an archive is named for what it is, and nothing is read into memory whose size the archive decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

_BLOCK, _CHUNK = 512, 262_144
#: Of a header that only holds a long name.
_MOST_EXTENDED = 65_536
_CHECKSUM = slice(148, 156)
_USTAR = b"ustar\x00"


class BadArchive(Exception):
    """It is no archive of a release; the message is a sentence about ``the archive``."""


class Kind(StrEnum):
    """As people read it in a sentence. Only the first three are in releases."""

    FILE = "a file"
    FOLDER = "a folder"
    LINK = "a link"
    HARD_LINK = "a hard link"
    CHARACTER_DEVICE = "a character device"
    BLOCK_DEVICE = "a block device"
    PIPE = "a named pipe"
    OTHER = "of a kind that no release has"


_KINDS = {
    b"0": Kind.FILE,
    b"\x00": Kind.FILE,
    b"1": Kind.HARD_LINK,
    b"2": Kind.LINK,
    b"3": Kind.CHARACTER_DEVICE,
    b"4": Kind.BLOCK_DEVICE,
    b"5": Kind.FOLDER,
    b"6": Kind.PIPE,
}
#: Headers that say more of the one after them: pax, and GNU's long name and long link.
_PAX, _LONG_NAME, _LONG_LINK = b"x", b"L", b"K"


@dataclass(frozen=True, slots=True)
class Member:
    """``size`` of a file in bytes; ``target`` of a link as it is written there."""

    name: str
    kind: Kind
    size: int = 0
    mode: int = 0o644
    target: str = ""


class Stream(Protocol):
    def read(self, size: int, /) -> bytes:
        """At most so many bytes, and none only at the end."""


class Tar:
    """Iterate once; between two members :meth:`content` gives the bytes of the one that came last."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._unread = self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        """Raises BadArchive, and whatever the stream raises."""
        more: dict[str, str] = {}
        while header := self._header():
            kind, size = header[156:157], _number(header[124:136])
            if kind in (_PAX, _LONG_NAME, _LONG_LINK):
                more |= _said(kind, self._extended(size))
                continue
            member = _member(header, more, size)
            more = {}
            self._unread, self._padding = member.size, -member.size % _BLOCK
            yield member
        while self._stream.read(_CHUNK):
            pass  # what compressed it adds its checksum at the very end

    def content(self) -> Iterator[bytes]:
        while self._unread:
            data = self._exactly(min(self._unread, _CHUNK))
            self._unread -= len(data)
            yield data
        self._exactly(self._padding)
        self._padding = 0

    def _header(self) -> bytes:
        """The next one; empty after the last."""
        for _ in self.content():
            pass
        header = self._exactly(_BLOCK)
        if not any(header):
            return b""
        blank = header[: _CHECKSUM.start] + b" " * 8 + header[_CHECKSUM.stop :]
        if header[_CHECKSUM].strip(b" \x00").lstrip(b"0") != f"{sum(blank):o}".encode():
            raise BadArchive("the archive is damaged, or no tar archive")
        return header

    def _extended(self, size: int) -> bytes:
        if size > _MOST_EXTENDED:
            raise BadArchive(f"the archive has a header of {size:,} bytes; allowed: {_MOST_EXTENDED:,}")
        data = self._exactly(size)
        self._exactly(-size % _BLOCK)
        return data

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._stream.read(size)
            if not part:
                raise BadArchive("the archive is cut off")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _member(header: bytes, more: dict[str, str], size: int) -> Member:
    name = more.get("path") or _name(header)
    kind = _KINDS.get(header[156:157], Kind.OTHER)
    if "size" in more:
        size = _decimal(more["size"])
    if kind is Kind.FILE and name.endswith("/"):
        kind = Kind.FOLDER  # as the oldest archives write them
    if size and kind in (Kind.FOLDER, Kind.LINK):
        raise BadArchive(f"{name!r} in the archive is {kind} and yet has {size:,} bytes")
    target = more.get("linkpath") or _text(header[157:257].partition(b"\x00")[0])
    return Member(name, kind, size, _number(header[100:108]), target)


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\x00")[0]
    prefix = header[345:500].partition(b"\x00")[0] if header[257:263] == _USTAR else b""
    return _text(prefix + b"/" + name if prefix else name)


def _said(kind: bytes, data: bytes) -> dict[str, str]:
    if kind == _PAX:
        return dict(_records(data))
    return {"path" if kind == _LONG_NAME else "linkpath": _text(data.rstrip(b"\x00"))}


def _records(data: bytes) -> Iterator[tuple[str, str]]:
    """``length key=value`` and a line break each; length counts itself."""
    while data:
        digits = data[:6].partition(b" ")[0]
        length = _decimal(_text(digits))
        record, data = data[len(digits) + 1 : length], data[length:]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise BadArchive("the archive has a header that cannot be read")
        if key.startswith(b"GNU.sparse"):
            raise BadArchive("the archive has a file with holes; pack it without --sparse")
        if key in (b"path", b"linkpath", b"size"):
            yield _text(key), _text(value[:-1])


def _number(field: bytes) -> int:
    """Octal, as every header of a small file has it."""
    digits = field.strip(b" \x00")
    if digits.strip(b"01234567"):
        raise BadArchive("the archive has a header that cannot be read")
    return int(digits or b"0", 8)


def _decimal(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 12):
        raise BadArchive("the archive has a header that cannot be read")
    return int(digits)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadArchive(f"the archive has the name {data[:100]!r}, which is no UTF-8") from None
