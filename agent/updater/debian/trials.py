"""What of an agent upgrade runs as the agent's user: in transient units, with no more rights than it needs (UPG-3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from agent.releases.description import place
from agent.setup.units import NOTHING_SPECIAL
from agent.updater.binary.host import Trial
from agent.updater.debian.disk import Disk
from agent.updater.debian.transient import TransientUnits, Unit
from agent.updater.machine import JobState, JobStatus
from agent.wire.manifest import AgentUpgrade

_UPDATER = "/opt/harmony-fleet/updater/fleet-updater"
#: Should the updater not be there to stop it. In seconds; above every limit that the updater has for it.
_LONGEST: Mapping[Trial, int] = {Trial.DOWNLOAD: 86_400, Trial.SELF_TEST: 900, Trial.PROBE: 3_600}
#: Of what a trial prints, because nothing else of it may write. The download's is the archive's size.
_MOST_PRINTED = 1_048_576
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
#: systemd's exit code when it could not execute a program.
_NOT_EXECUTABLE = 203

_COMMON = (
    *(line for line in NOTHING_SPECIAL.splitlines() if not line.startswith("#")),
    "CapabilityBoundingSet=",
    "InaccessiblePaths=-/dev/shm",
    "LimitCORE=0",
    "MemoryMax=256M",
    "TasksMax=64",
    # In memory, where what it writes counts as its own and goes with it: a private one would lie on the disk.
    "TemporaryFileSystem=/tmp:mode=1777,size=16M /var/tmp:ro",
    # One that does not listen to being asked is killed, while the updater still waits for it.
    "TimeoutStopSec=5",
    "WorkingDirectory=/",
)


class Trials:
    """All methods raise MachineError when systemd can't be asked, or the disk is full."""

    def __init__(self, outputs: Path, disk: Disk, agent_user: str) -> None:
        self._units = TransientUnits(outputs)
        self._disk = disk
        self._agent_user = agent_user

    def start(self, attempt: str, trial: Trial, target: AgentUpgrade) -> None:
        """Start it unless it runs; one that has ended is started anew."""
        if self._units.observe(_name(attempt, trial)).state is JobState.RUNNING:
            return
        if trial is Trial.DOWNLOAD:
            self._disk.prepare(attempt, target)
        properties = [*self._properties(attempt, trial, target)]
        self._units.start(Unit(_name(attempt, trial), self._command(attempt, trial, target), properties, _ENVIRONMENT))

    def observe(self, attempt: str, trial: Trial) -> JobStatus:
        """Where it stands; one that could not even be executed says so."""
        status = self._units.observe(_name(attempt, trial))
        if status.state is JobState.ENDED and status.exit_code == _NOT_EXECUTABLE and not status.tail:
            return replace(status, tail="the program cannot be executed on this device")
        return status

    def stop(self, attempt: str, trial: Trial) -> None:
        """End it if it runs, and forget it."""
        self._units.stop(_name(attempt, trial))

    def _command(self, attempt: str, trial: Trial, target: AgentUpgrade) -> list[str]:
        if trial is Trial.DOWNLOAD:
            return [_UPDATER, "fetch", str(self._disk.staging.job(attempt))]
        program = str(self._disk.releases / place(target) / "fleet-agent")
        # How long it may take is the updater's to say, who ends it then.
        patience = [f"--seconds={_LONGEST[trial]}"] if trial is Trial.PROBE else []
        return [program, trial.value, *patience]

    def _properties(self, attempt: str, trial: Trial, target: AgentUpgrade) -> Iterator[str]:
        yield f"Description=Harmony Fleet: {trial.value} of agent {target.version}"
        yield f"User={self._agent_user}"
        yield f"Group={self._agent_user}"
        yield f"RuntimeMaxSec={_LONGEST[trial]}"
        yield from _COMMON
        if trial is Trial.DOWNLOAD:
            yield f"ReadWritePaths={self._disk.staging.folder(attempt)}"
            yield f"LimitFSIZE={target.maxSize}"
        else:
            yield f"LimitFSIZE={_MOST_PRINTED}"
        if trial is Trial.SELF_TEST:
            # It reads what is on the device, and Podman's socket at most.
            yield "RestrictAddressFamilies=AF_UNIX"
            yield "IPAddressDeny=any"
        else:
            yield "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6"


def _name(attempt: str, trial: Trial) -> str:
    return f"harmony-fleet-try-{attempt}-{trial.value}"
