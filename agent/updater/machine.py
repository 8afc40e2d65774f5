"""What the updater needs of the operating system, in plain data; implemented by ``debian`` and ``simulated``.

A machine decides nothing: it says what it finds and does what it is told. All decisions are in the pure modules of
:mod:`agent.updater`. No method takes a package, a command, a path or a repository (SYS-7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class MachineError(Exception):
    """The machine could not say or do it; the message is one sentence with the failing program's own words."""


class Job(StrEnum):
    """What may run in a transient unit of its own; which command that is belongs to the machine (SYS-1, SYS-5).

    ``UPDATE`` fetches the package lists. ``UPGRADE`` is the full upgrade: non-interactive, kept configuration files
    win, helpers that restart services leave agent and updater alone, and a lock that somebody else holds is waited
    for. ``CONFIGURE`` (``dpkg --configure -a``) and ``FIX`` (``apt-get -f install``) finish what was interrupted.
    """

    UPDATE = "update"
    UPGRADE = "upgrade"
    CONFIGURE = "configure"
    FIX = "fix"


class JobState(StrEnum):
    """``ABSENT``: never started, not known any more, or started before the device was last booted."""

    ABSENT = "absent"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """``silent_seconds`` since the last output (or the start), while it runs; ``exit_code`` once it has ended: negative
    or above 128 when a signal ended it.

    ``tail`` is the end of its output so far, at most :data:`MAX_TAIL_CHARS`, printable characters and line breaks only.
    """

    state: JobState
    silent_seconds: float = 0.0
    exit_code: int = 0
    tail: str = ""


MAX_TAIL_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Volume:
    """Where a folder lies. Folders with the same ``filesystem`` share its free bytes."""

    filesystem: str
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """What the package manager would do now.

    ``removes`` are the names of all packages that would go; ``needs`` the bytes that it would take, at its peak, by
    folder: the archives to fetch, what unpacking adds, and new kernels with their initial file systems. Folders are
    those of :meth:`Machine.volumes`.
    """

    upgrades: int = 0
    installs: int = 0
    removes: tuple[str, ...] = ()
    needs: Mapping[str, int] = field(default_factory=dict)


#: The folders whose space is measured.
ROOT, VAR, BOOT = "/", "/var", "/boot"
FOLDERS = (ROOT, VAR, BOOT)


class Machine(Protocol):
    """Every method but the clocks may raise :class:`MachineError`, and answers within a limit of its own (2 minutes;
    ``simulation`` 10) so that a hanging program never holds the updater for ever.
    """

    # Clocks

    def boot_id(self) -> str:
        """Of this boot, as the kernel writes it: a UUID in lower case."""

    def boottime(self) -> float:
        """Seconds since boot, sleep included, on a clock that nobody can set (``CLOCK_BOOTTIME``)."""

    def now(self) -> float:
        """Unix seconds on the clock that people set; may be wrong."""

    # What is there

    def can_upgrade(self) -> bool:
        """Whether apt, dpkg and systemd are there at all; otherwise the device has no ``AptFullUpgradeV1``."""

    def running_kernel(self) -> str:
        """The release of the running kernel, as ``uname -r`` says it."""

    def expected_kernel(self) -> str | None:
        """The kernel that should run after a reboot: the newest installed one of the running flavour.

        ``None`` where no kernel package is installed, as in a container or on boards with a kernel of their own.
        """

    def package_problems(self) -> str:
        """What ``dpkg --audit`` and an interrupted dpkg leave to do, in their own words; empty when all is clean."""

    def lock_holder(self) -> str:
        """Who holds a lock of dpkg or apt, such as ``unattended-upgr (process 812)``; empty when nobody does.

        A job of ours counts as well.
        """

    def volumes(self) -> Mapping[str, Volume]:
        """Each of :data:`FOLDERS`."""

    def simulation(self) -> Simulation:
        """The full upgrade, simulated with the package lists as they are."""

    # What runs beside the updater

    def start(self, attempt: str, job: Job) -> None:
        """Start a job in a transient unit named after both, which outlives the updater.

        One that has ended is started anew; one that still runs is left alone.
        """

    def observe(self, attempt: str, job: Job) -> JobStatus: ...

    def stop(self, attempt: str, job: Job) -> None:
        """End a job that runs; afterwards it is ``ENDED`` or ``ABSENT``. Never used for ``UPGRADE``."""

    # The device

    def reboot(self) -> None:
        """Ask for an orderly reboot, and return without waiting for it."""
