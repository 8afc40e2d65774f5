"""What a decision may need to see, and what it may come to, in plain data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agent.updater.journal import Event, Mark
from agent.updater.machine import Job, JobStatus, Simulation, Volume
from agent.wire.messages import AttemptState


class Sight(StrEnum):
    """What can be looked at; the value is the field of :class:`Seen` that it fills."""

    PACKAGES = "packages"
    LOCK = "lock"
    VOLUMES = "volumes"
    SIMULATION = "simulation"
    JOB = "job"
    KERNELS = "kernels"


@dataclass(frozen=True, slots=True)
class Kernels:
    running: str
    expected: str | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known at this moment. ``None``: not looked at yet, :class:`Look` asks for it.

    ``resumed``: this process did not write the last record, so whatever it was about may have been cut off.
    ``has_contact``: the control plane acknowledged a report in this boot. ``built``: Unix seconds when this release was
    built. ``trouble``: why the machine could not be looked at, or could not do what it was told last.
    """

    boot_id: str
    uptime: float
    now: float
    resumed: bool = False
    has_contact: bool = False
    built: float = 0.0
    trouble: str = ""
    packages: str | None = None
    lock: str | None = None
    volumes: Mapping[str, Volume] | None = None
    simulation: Simulation | None = None
    job: JobStatus | None = None
    kernels: Kernels | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Look at this, then ask again. ``job`` says which one with ``Sight.JOB``."""

    sight: Sight
    job: Job | None = None


class Deed:
    """What is done on the device once its record is written; each executor has its own."""


@dataclass(frozen=True)
class StartJob(Deed):
    job: Job


@dataclass(frozen=True)
class StopJob(Deed):
    job: Job


@dataclass(frozen=True)
class Reboot(Deed):
    pass


@dataclass(frozen=True, slots=True)
class Write:
    """Append a record; then, and only when it is safely on the disk, do the deed.

    ``kernel`` and ``release``: what the record keeps, as :class:`~agent.updater.journal.Record` says.
    """

    step: str
    event: Event
    message: str
    mark: Mark = Mark.NONE
    state: AttemptState | None = None
    kernel: str = ""
    release: str = ""
    deed: Deed | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again in so many seconds; ``message`` says what for."""

    seconds: float
    message: str


Action = Look | Write | Wait
