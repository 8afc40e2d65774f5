"""Who holds the locks of dpkg and apt."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from agent.wording import printable

#: In the order in which apt takes them.
LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
#: The kernel's ``struct flock`` on 64 bit: type, whence, start, length, process.
_FLOCK = "hhqqi"
#: How the kernel numbers a holder outside of our process namespace; held it is all the same.
_UNSEEN = -1


def holder(paths: Iterable[str]) -> str:
    """``unattended-upgr (process 812)``, or empty when all are free. The kernel is asked, nothing is locked for it.

    Raises:
        OSError: a lock file is there and can't be opened.
    """
    for path in paths:
        if process := _process(path):
            return _name(process)
    return ""


def _process(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return 0 if kind == fcntl.F_UNLCK else process or _UNSEEN


def _name(process: int) -> str:
    if process == _UNSEEN:
        return "a process outside of this container"
    name = "a process that has just ended"
    with contextlib.suppress(OSError):
        name = printable(Path(f"/proc/{process}/comm").read_text(errors="replace").removesuffix("\n"), keep="")
    return f"{name} (process {process})"
