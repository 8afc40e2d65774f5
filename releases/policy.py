"""What an archive must say of itself before it is put on the shelf. Pure."""

from __future__ import annotations

from typing import get_args

from agent.wire import names
from agent.wire.manifest import Architecture

ARCHITECTURES = get_args(Architecture)


def description_problem(version: object, architecture: object) -> str:
    """Why a ``release.json`` with these is none of a release, in one sentence; or empty."""
    if not isinstance(version, str) or len(version) > 64 or not names.fits(names.VERSION, version):
        return f"its release.json has the version {str(version)[:80]!r}; allowed: like 1.2.3 or 1.2.3-rc.1"
    if architecture not in ARCHITECTURES:
        return f"its release.json has the architecture {str(architecture)[:80]!r}; allowed: {', '.join(ARCHITECTURES)}"
    return ""
