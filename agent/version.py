"""The version of this agent: that of the release it is part of, or of the source when it runs from there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

#: The same as the package's.
SOURCE = "0.1.0"


def own(folder: Path | None) -> str:
    """What ``release.json`` in the folder says; a release may have another name than its source. A missing or odd file
    is no reason not to run.
    """
    if folder is None:
        return SOURCE
    try:
        version = json.loads((folder / "release.json").read_bytes())["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return SOURCE
    return version if isinstance(version, str) and version else SOURCE


VERSION = own(Path(sys.executable).resolve().parent if getattr(sys, "frozen", False) else None)
