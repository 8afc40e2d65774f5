"""How much space an agent upgrade needs. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agent.updater.binary.host import RELEASES, STAGING, VERIFIED
from agent.updater.machine import Volume
from agent.updater.requirements import space_problems as problems_of
from agent.wire.manifest import AgentUpgrade

#: Of an unpacked release to its archive; PyInstaller's come to about three.
UNPACKED = 4


def space_problems(target: AgentUpgrade, volumes: Mapping[str, Volume]) -> list[str]:
    """One sentence for each file system that is too small: the archive twice, and the release unpacked."""
    needs = {STAGING: target.maxSize, VERIFIED: target.maxSize, RELEASES: UNPACKED * target.maxSize}
    return problems_of(needs, volumes)
