"""What an agent upgrade needs of the device, in plain data; implemented by ``debian`` and ``simulated``.

A host decides nothing. Places are names of folders below ``/opt/harmony-fleet/releases``; ``seconds`` is a limit after
which the call gives up with MachineError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agent.releases.description import Release
from agent.updater.machine import JobStatus, Volume
from agent.wire.manifest import AgentUpgrade

#: Keys of :meth:`Host.volumes`.
STAGING, VERIFIED, RELEASES = "/var/lib/harmony-fleet/staging", "/var/lib/harmony-fleet/updater", "/opt/harmony-fleet"


class Trial(StrEnum):
    """What runs as the agent's user in a transient unit of its own, never as root (UPG-3).

    ``DOWNLOAD`` fetches the archive with the updater's own program; it resumes, and never writes more than ``maxSize``
    bytes. ``SELF_TEST`` and ``PROBE`` are commands of the unpacked candidate.
    """

    DOWNLOAD = "download"
    SELF_TEST = "self-test"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The agent's unit. ``restarts``: how often systemd started it anew by itself since it was last started by hand;
    ``seconds``: since its process started, when it runs.
    """

    is_running: bool
    restarts: int = 0
    seconds: float = 0.0


class Host(Protocol):
    """All methods raise MachineError with one sentence when the device can't do or say it, such as when a disk is full.

    Everything may be called again after a crash, whatever the first call came to.
    """

    def can_replace(self) -> bool:
        """Whether this device has the layout and systemd at all; otherwise it has no ``AgentUpgradeV1``."""

    def architecture(self) -> str:
        """``amd64`` or ``arm64``, as targets write it."""

    def active(self) -> str:
        """The place that ``active`` leads to.

        Raises:
            MachineError: it is missing, no link, dangling, or leads out of ``releases`` (U5).
        """

    def places(self) -> Sequence[str]:
        """All that lie there, whole or not, the newest first."""

    def release(self, place: str) -> Release:
        """The description of what lies there."""

    def damage(self, place: str) -> str:
        """What is wrong there: missing, a file that was changed, or one that is not listed; empty when it is whole."""

    def volumes(self) -> Mapping[str, Volume]:
        """Of :data:`STAGING`, :data:`VERIFIED` and :data:`RELEASES`."""

    def start(self, attempt: str, trial: Trial, target: AgentUpgrade) -> None:
        """Start it unless it runs; one that has ended is started anew."""

    def observe(self, attempt: str, trial: Trial) -> JobStatus: ...

    def stop(self, attempt: str, trial: Trial) -> None:
        """End it if it runs; afterwards it is ``ENDED`` or ``ABSENT``."""

    def verify(self, attempt: str, target: AgentUpgrade, seconds: float) -> str:
        """Copy the download to a place that is root's alone, hashing the copy; why it is not the target, or empty."""

    def unpack(self, attempt: str, target: AgentUpgrade, seconds: float) -> str:
        """Unpack the verified archive to its place, whole or not at all; why it is no release to be run, or empty.

        A damaged release at that place is replaced, unless ``active`` leads there.
        """

    def stop_agent(self) -> None: ...

    def start_agent(self) -> None: ...

    def agent(self) -> AgentStatus: ...

    def switch(self, place: str) -> None:
        """Let ``active`` lead there: by a rename, flushed to the disk before it returns."""

    def tidy(self, attempt: str, keep: Collection[str]) -> None:
        """Remove what was staged for the attempt, and what lies among the releases but the active one and ``keep``."""
