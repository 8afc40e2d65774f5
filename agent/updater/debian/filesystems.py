"""Which folders share their free bytes: pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

#: Parts of such a pool have device numbers of their own and yet take from the same free bytes.
_POOLED = ("btrfs", "zfs", "bcachefs")
_ESCAPED = re.compile(r"\\([0-7]{3})")
#: ``36 35 98:0 /root /mount/point options … - type source options``.
_POINT, _LEAST_WORDS = 4, 10


def pool(mountinfo: str, folder: str) -> str:
    """What a folder's pool is called; empty for an ordinary file system, which its device number tells from others.

    ``mountinfo`` is ``/proc/self/mountinfo``, ``folder`` an absolute path without links in it.
    """
    wanted = PurePosixPath(folder)
    longest, found = -1, ""
    for line in mountinfo.splitlines():
        words = line.split(" ")
        if len(words) < _LEAST_WORDS or "-" not in words[:-2]:
            continue
        point = PurePosixPath(_plain(words[_POINT]))
        # Of several at one place the last covers the others.
        if wanted.is_relative_to(point) and len(point.parts) >= longest:
            kind, source = words[words.index("-") + 1 :][:2]
            longest, found = len(point.parts), _name(kind, _plain(source))
    return found


def _name(kind: str, source: str) -> str:
    if kind not in _POOLED:
        return ""
    return f"{kind} {source.partition('/')[0] if kind == 'zfs' else source}"


def _plain(word: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), word)
