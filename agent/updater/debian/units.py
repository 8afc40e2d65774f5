"""apt and dpkg in transient units, which no restart of the updater and no ordinary shutdown cuts off (SYS-5)."""

from __future__ import annotations

from pathlib import Path

from agent.updater.debian.commands import ENVIRONMENT, JOBS
from agent.updater.debian.transient import TransientUnits, Unit
from agent.updater.machine import Job, JobStatus

_PREFIX = "harmony-fleet-apt-"

#: What must not be cut off by an ordinary shutdown: systemd asks it to end by a signal that does nothing, and waits.
#: A power button pressed for half an hour's hang still works.
_FINISHES = ("KillSignal=SIGCONT", "TimeoutStopSec=30min", "SendSIGHUP=no")


class Units:
    """``outputs`` is a folder of root's for what the jobs print. All raise MachineError when systemd can't be asked."""

    def __init__(self, outputs: Path) -> None:
        self._units = TransientUnits(outputs)

    def start(self, attempt: str, job: Job) -> None:
        """Start it unless it runs."""
        properties = [
            f"Description=Harmony Fleet: {job.value} of the packages",
            # When memory runs out the kernel ends one process; systemd must not end dpkg because of it.
            "OOMPolicy=continue",
            "UMask=0022",
            *(_FINISHES if job is not Job.UPDATE else ()),
        ]
        self._units.start(Unit(_name(attempt, job), JOBS[job], properties, ENVIRONMENT))

    def observe(self, attempt: str, job: Job) -> JobStatus:
        """Where it stands."""
        return self._units.observe(_name(attempt, job))

    def stop(self, attempt: str, job: Job) -> None:
        """End it."""
        self._units.stop(_name(attempt, job))

    def end_leftovers(self) -> None:
        """End what jobs that are over have left running, such as a key agent that some maintainer script woke up.

        A shutdown would wait for it as patiently as for dpkg.
        """
        self._units.signal_all(_PREFIX)


def _name(attempt: str, job: Job) -> str:
    return f"{_PREFIX}{attempt}-{job.value}"
