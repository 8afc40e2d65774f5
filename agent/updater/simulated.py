"""A machine that upgrades nothing: for simulated fleets and tests, with faults on demand.

It obeys the protocol of :mod:`agent.updater.machine`, shown by the same contract tests as the real one. It runs no
process and keeps no thread: what it says follows from the injected clock, so that thousands of them cost little.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from agent.clock import Clock, SystemClock
from agent.updater.machine import BOOT, ROOT, VAR, Job, JobState, JobStatus, MachineError, Simulation, Volume

PLENTY = 8_000_000_000
_BOOTS = uuid.UUID("6f1e3c52-0f0e-4f0b-9a57-5d1f2d4f9a10")


class Pace(msgspec.Struct, forbid_unknown_fields=True):
    """How long things take, in seconds."""

    update: float = 2.0
    upgrade: float = 10.0
    repair: float = 1.0
    boot: float = 5.0


class Faults(msgspec.Struct, forbid_unknown_fields=True):
    """What goes wrong. Jobs are named as in :class:`~agent.updater.machine.Job`.

    ``exit_codes``: with what a job ends, by its name. ``hang``: jobs that never end and say nothing. ``unclean``: what
    dpkg complains about before anything began. ``breaks``: an upgrade that fails or is cut off by a power loss leaves
    dpkg interrupted; ``beyond_repair``: and repairs do not help. ``lock_seconds``: somebody else holds the lock for as
    long. ``free``, ``needs``: bytes by folder. ``removes``: what an upgrade would remove. ``clock_offset``: seconds
    that people's clock is wrong. ``keeps_kernel``: a reboot starts the old one again. ``ignored_reboots``: how many
    requests for a reboot do nothing. ``errors``: methods of the machine that fail, with their words.
    ``host_uptime``: seconds that its host is up, for a machine that is a container and sees the host's clock.
    """

    exit_codes: dict[str, int] = {}
    hang: list[str] = []
    unclean: str = ""
    breaks: bool = True
    beyond_repair: bool = False
    lock_seconds: float = 0.0
    free: dict[str, int] = {}
    needs: dict[str, int] = {}
    removes: list[str] = []
    clock_offset: float = 0.0
    keeps_kernel: bool = False
    ignored_reboots: int = 0
    errors: dict[str, str] = {}
    host_uptime: float = 0.0


@dataclass(slots=True)
class _Run:
    """A job of this boot. ``is_counted``: what its end does to the packages was done."""

    started: float
    is_counted: bool = False


class SimulatedMachine:
    """``name`` makes boot ids differ between machines; ``faults`` and ``pace`` may be changed at any time.

    ``kernel`` empty means that no kernel package is installed; ``new_kernel`` is what an upgrade installs.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        name: str = "",
        faults: Faults | None = None,
        pace: Pace | None = None,
        kernel: str = "6.1.0-1-amd64",
        new_kernel: str = "6.1.0-2-amd64",
    ) -> None:
        self.faults = faults or Faults()
        self.pace = pace or Pace()
        self.boots = 1
        self.upgrades_started = 0
        self._clock = clock or SystemClock()
        self._name = name
        self._made = self._booted = self._clock.monotonic()
        self._has_kernel_package = bool(kernel)
        self._running = self._newest = kernel or "6.6.0-board"
        self._new_kernel = new_kernel
        self._problems = ""
        self._runs: dict[tuple[str, Job], _Run] = {}

    # For tests and demos -------------------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        """False while the machine boots; its programs do not run then."""
        return self._clock.monotonic() >= self._booted

    def cut_power(self) -> None:
        """Off and on again at once: a new boot, and an upgrade that ran is cut off in the middle."""
        for (_, job), run in self._runs.items():
            if job is Job.UPGRADE and self._is_running(job, run) and self.faults.breaks:
                self._interrupt()
        self._boot(0.0)

    # The protocol --------------------------------------------------------------------------------------------------

    def boot_id(self) -> str:
        return str(uuid.uuid5(_BOOTS, f"{self._name}/{self.boots}"))

    def boottime(self) -> float:
        if self.faults.host_uptime:
            return self.faults.host_uptime + self._clock.monotonic() - self._made
        return max(0.0, self._clock.monotonic() - self._booted)

    def now(self) -> float:
        return self._clock.now() + self.faults.clock_offset

    def can_upgrade(self) -> bool:
        return True

    def running_kernel(self) -> str:
        self._may_fail("running_kernel")
        return self._running

    def expected_kernel(self) -> str | None:
        self._may_fail("expected_kernel")
        self._settle()
        return self._newest if self._has_kernel_package else None

    def package_problems(self) -> str:
        self._may_fail("package_problems")
        self._settle()
        return self._problems or self.faults.unclean

    def lock_holder(self) -> str:
        self._may_fail("lock_holder")
        held = self._clock.monotonic() - self._made < self.faults.lock_seconds
        return "unattended-upgr (process 812)" if held else ""

    def volumes(self) -> Mapping[str, Volume]:
        self._may_fail("volumes")
        free = self.faults.free
        system = Volume("8:1", free.get(VAR, free.get(ROOT, PLENTY)))
        return {ROOT: system, VAR: system, BOOT: Volume("8:2", free.get(BOOT, PLENTY))}

    def simulation(self) -> Simulation:
        self._may_fail("simulation")
        return Simulation(upgrades=3, removes=tuple(self.faults.removes), needs=dict(self.faults.needs))

    def start(self, attempt: str, job: Job) -> None:
        self._may_fail("start")
        self._settle()
        run = self._runs.get((attempt, job))
        if run is None or not self._is_running(job, run):
            self.upgrades_started += job is Job.UPGRADE
            self._runs[attempt, job] = _Run(self._clock.monotonic())

    def observe(self, attempt: str, job: Job) -> JobStatus:
        self._may_fail("observe")
        self._settle()
        run = self._runs.get((attempt, job))
        if run is None:
            return JobStatus(JobState.ABSENT)
        if self._is_running(job, run):
            return JobStatus(JobState.RUNNING, silent_seconds=self._clock.monotonic() - run.started)
        code = self.faults.exit_codes.get(job, 0)
        return JobStatus(JobState.ENDED, exit_code=code, tail=f"E: {job} failed" if code else f"{job}: done")

    def stop(self, attempt: str, job: Job) -> None:
        self._may_fail("stop")
        self._runs.pop((attempt, job), None)

    def reboot(self) -> None:
        self._may_fail("reboot")
        if self.faults.ignored_reboots > 0:
            self.faults.ignored_reboots -= 1
            return
        self._boot(self.pace.boot)

    # Inside --------------------------------------------------------------------------------------------------------

    def _may_fail(self, method: str) -> None:
        if method in self.faults.errors:
            raise MachineError(self.faults.errors[method])

    def _is_running(self, job: Job, run: _Run) -> bool:
        seconds = {Job.UPDATE: self.pace.update, Job.UPGRADE: self.pace.upgrade}.get(job, self.pace.repair)
        return job in self.faults.hang or self._clock.monotonic() - run.started < seconds

    def _settle(self) -> None:
        """Let the jobs that have ended by now have their effect on the packages, once each."""
        for (_, job), run in self._runs.items():
            if run.is_counted or self._is_running(job, run):
                continue
            run.is_counted = True
            self._end(job, failed=self.faults.exit_codes.get(job, 0) != 0)

    def _end(self, job: Job, *, failed: bool) -> None:
        if job is Job.UPGRADE and failed and self.faults.breaks:
            self._interrupt()
        elif job is Job.UPGRADE and not failed and self._has_kernel_package:
            self._newest = self._new_kernel
        elif job is Job.FIX and not self.faults.beyond_repair:
            self._problems = ""

    def _interrupt(self) -> None:
        self._problems = "dpkg was interrupted: libexample1 is half configured"

    def _boot(self, seconds: float) -> None:
        self._settle()
        self._runs.clear()
        self.boots += 1
        self._booted = self._clock.monotonic() + seconds
        if not self.faults.keeps_kernel:
            self._running = self._newest
