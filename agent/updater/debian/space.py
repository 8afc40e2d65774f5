"""How many bytes are free where a folder lies."""

from __future__ import annotations

import os
from pathlib import Path

from agent.updater.debian import filesystems
from agent.updater.machine import MachineError, Volume

_MOUNTS = Path("/proc/self/mountinfo")


def volume(folder: Path) -> Volume:
    """What is not there lies on the root: a device without ``/boot`` has it there.

    Raises:
        MachineError: the system does not say.
    """
    there = folder if folder.exists() else Path("/")
    try:
        found = os.statvfs(there)
        pool = filesystems.pool(_MOUNTS.read_text(errors="replace"), os.path.realpath(there))
        return Volume(pool or str(there.stat().st_dev), found.f_bavail * found.f_frsize)
    except OSError as error:
        raise MachineError(f"{there}: {error.strerror}") from None
