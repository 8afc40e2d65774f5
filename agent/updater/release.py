"""Which release this updater is of: the file ``release.json`` that lies beside its executable."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from agent.updater.updater import Release
from agent.version import VERSION

#: No release of this source is older, wherever it runs: 2026-12-01.
EARLIEST = 1_796_083_200.0


class _File(msgspec.Struct):
    """``built``: Unix seconds."""

    version: str = VERSION
    built: float = 0.0


def own(folder: Path | None = None) -> Release:
    """What is written beside the executable; a missing or odd file is no reason not to run."""
    folder = folder or Path(sys.executable).parent
    try:
        file = msgspec.json.decode((folder / "release.json").read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        file = _File()
    return Release(version=file.version, built=max(file.built, EARLIEST))
