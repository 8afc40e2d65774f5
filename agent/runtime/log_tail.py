"""The end of a container's log, whatever its size. Pure."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator

from agent.runtime.base import LogTail

_HEAD_BYTES = 8


def log_frames(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The payloads of Podman's multiplexed log stream: 8 bytes of head (kind, length), then the text.

    ``parts`` may be cut anywhere, and so may what is returned: a line of any length needs no memory.
    """
    head, left = b"", 0
    for part in parts:
        place = 0
        while place < len(part):
            if left:
                text = part[place : place + left]
                left -= len(text)
                place += len(text)
                yield text
                continue
            taken = part[place : place + _HEAD_BYTES - len(head)]
            head += taken
            place += len(taken)
            if len(head) == _HEAD_BYTES:
                (left,) = struct.unpack(">I", head[4:])
                head = b""


def tail(texts: Iterable[bytes], lines: int, limit: int) -> LogTail:
    """The end of a log, of which never much more than ``limit`` bytes are held."""
    kept, size, is_cut = deque[bytes](), 0, False
    for text in texts:
        kept.append(text)
        size += len(text)
        while size - len(kept[0]) >= limit:
            size -= len(kept.popleft())
            is_cut = True
    data = b"".join(kept)
    is_cut = is_cut or size > limit
    text_lines = data[-limit:].decode("utf-8", "replace").split("\n")
    if text_lines and not text_lines[-1]:
        text_lines.pop()
    return LogTail("\n".join(text_lines[-lines:]), is_cut and len(text_lines) <= lines)
