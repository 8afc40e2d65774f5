"""A device whose agent is replaced in play: for simulated fleets and tests, with faults on demand.

It obeys the protocol of :mod:`.host`, shown by the same contract tests as the real one. It runs no process: what it
says follows from the injected clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from agent.clock import Clock, SystemClock
from agent.releases.description import Format, Release, place
from agent.updater.binary.host import RELEASES, STAGING, VERIFIED, AgentStatus, Trial
from agent.updater.machine import JobState, JobStatus, MachineError, Volume
from agent.wire.manifest import AgentUpgrade

PLENTY = 8_000_000_000
#: systemd starts what ended by itself anew after so many seconds.
_RESTART_SECONDS = 5.0


class HostFaults(msgspec.Struct, forbid_unknown_fields=True):
    """What goes wrong. Trials are named as in :class:`~agent.updater.binary.host.Trial`.

    ``trials``: with what words a trial fails. ``hang``: trials that never end. ``verified``, ``unpacked``: why the
    archive is not what is wanted. ``dies``: places whose agent ends at once, as often as it is started; ``*`` are all
    but what the device had at first. ``damaged``: places that are not whole, and how. ``layout``: what is wrong with
    ``active``. ``formats``: versions that the candidate writes, by format. ``free``: bytes by folder. ``errors``:
    methods that fail, with their words.
    """

    trials: dict[str, str] = {}
    hang: list[str] = []
    verified: str = ""
    unpacked: str = ""
    dies: list[str] = []
    damaged: dict[str, str] = {}
    layout: str = ""
    formats: dict[str, int] = {}
    free: dict[str, int] = {}
    errors: dict[str, str] = {}


@dataclass(slots=True)
class _Unit:
    """The agent's unit; ``started`` on the monotonic clock, when it is not stopped."""

    place: str
    started: float | None


@dataclass(slots=True)
class _Run:
    """A trial of this boot, and of which version."""

    version: str
    started: float


@dataclass
class SimulatedHost:
    """``version`` is what the device has at first; ``trial_seconds``: how long a trial takes.

    ``starts``: how often the agent's unit was started; a simulated device then becomes :attr:`running_version`.
    """

    clock: Clock = field(default_factory=SystemClock)
    version: str = "1.0.0"
    cpu: str = "amd64"
    faults: HostFaults = field(default_factory=HostFaults)
    trial_seconds: float = 2.0

    def __post_init__(self) -> None:
        self.releases = {self.version: self._release(self.version)}
        self.link = self.version
        self.unit = _Unit(self.version, self.clock.monotonic())
        self.downloads = self.starts = 0
        self._trials: dict[tuple[str, Trial], _Run] = {}

    # For tests and demos -------------------------------------------------------------------------------------------

    @property
    def running_version(self) -> str:
        """The agent that runs; empty while none does."""
        return self.releases[self.unit.place].version if self._status().is_running else ""

    def boot(self) -> None:
        """The device is started anew: no trial survives, and systemd starts what ``active`` leads to."""
        self._trials.clear()
        self._start_unit()

    # The protocol --------------------------------------------------------------------------------------------------

    def can_replace(self) -> bool:
        return True

    def architecture(self) -> str:
        self._may_fail("architecture")
        return self.cpu

    def active(self) -> str:
        self._may_fail("active")
        if self.faults.layout:
            raise MachineError(self.faults.layout)
        return self.link

    def places(self) -> Sequence[str]:
        self._may_fail("places")
        return list(reversed(self.releases))

    def release(self, place: str) -> Release:
        self._may_fail("release")
        if place not in self.releases:
            raise MachineError(f"{place} does not exist")
        return self.releases[place]

    def damage(self, place: str) -> str:
        self._may_fail("damage")
        return self.faults.damaged.get(place, "") if place in self.releases else "release.json is missing"

    def volumes(self) -> Mapping[str, Volume]:
        self._may_fail("volumes")
        free = self.faults.free
        return {folder: Volume(folder, free.get(folder, PLENTY)) for folder in (STAGING, VERIFIED, RELEASES)}

    def start(self, attempt: str, trial: Trial, target: AgentUpgrade) -> None:
        self._may_fail("start")
        if self.observe(attempt, trial).state is JobState.RUNNING:
            return
        self.downloads += trial is Trial.DOWNLOAD
        self._trials[attempt, trial] = _Run(target.version, self.clock.monotonic())

    def observe(self, attempt: str, trial: Trial) -> JobStatus:
        self._may_fail("observe")
        run = self._trials.get((attempt, trial))
        if run is None:
            return JobStatus(JobState.ABSENT)
        if trial in self.faults.hang or self.clock.monotonic() - run.started < self.trial_seconds:
            return JobStatus(JobState.RUNNING)
        if words := self.faults.trials.get(trial):
            return JobStatus(JobState.ENDED, exit_code=1, tail=words)
        return JobStatus(JobState.ENDED, tail=f"fleet-agent {run.version} {trial.value} passed")

    def stop(self, attempt: str, trial: Trial) -> None:
        self._may_fail("stop")
        self._trials.pop((attempt, trial), None)

    def verify(self, attempt: str, target: AgentUpgrade, seconds: float) -> str:
        self._may_fail("verify")
        return self.faults.verified

    def unpack(self, attempt: str, target: AgentUpgrade, seconds: float) -> str:
        self._may_fail("unpack")
        if self.faults.unpacked:
            return self.faults.unpacked
        formats = {name: Format((1, writes), writes) for name, writes in self.faults.formats.items()}
        self.releases[place(target)] = self._release(target.version, formats)
        self.faults.damaged.pop(place(target), None)
        return ""

    def stop_agent(self) -> None:
        self._may_fail("stop_agent")
        self.unit.started = None

    def start_agent(self) -> None:
        self._may_fail("start_agent")
        self._start_unit()

    def agent(self) -> AgentStatus:
        self._may_fail("agent")
        return self._status()

    def switch(self, place: str) -> None:
        self._may_fail("switch")
        self.link = place

    def tidy(self, attempt: str, keep: Collection[str]) -> None:
        self._may_fail("tidy")
        for key in [key for key in self._trials if key[0] == attempt]:
            del self._trials[key]
        for name in [name for name in self.releases if name != self.link and name not in keep]:
            del self.releases[name]

    # Inside --------------------------------------------------------------------------------------------------------

    def _status(self) -> AgentStatus:
        if self.unit.started is None or self.unit.place not in self.releases:
            return AgentStatus(is_running=False)
        since = self.clock.monotonic() - self.unit.started
        if self._dies():
            return AgentStatus(is_running=False, restarts=int(since // _RESTART_SECONDS))
        return AgentStatus(is_running=True, seconds=since)

    def _start_unit(self) -> None:
        self.unit = _Unit(self.link, self.clock.monotonic())
        self.starts += 1

    def _dies(self) -> bool:
        is_first = self.unit.place == self.version
        return self.unit.place in self.faults.dies or ("*" in self.faults.dies and not is_first)

    def _release(self, version: str, formats: dict[str, Format] | None = None) -> Release:
        return Release(version, self.cpu, 0.0, {}, {"state": Format(), **(formats or {})})

    def _may_fail(self, method: str) -> None:
        if method in self.faults.errors:
            raise MachineError(self.faults.errors[method])
