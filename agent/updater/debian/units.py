"""Jobs in transient units of systemd: they outlive the updater, and a restarted updater finds them again (SYS-5)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.clock import SystemClock
from agent.updater.debian.commands import ENVIRONMENT, JOBS, output
from agent.updater.machine import MAX_TAIL_CHARS, Job, JobState, JobStatus, MachineError
from agent.wording import printable, without_colours

_PREFIX = "harmony-fleet-apt-"
_SYSTEMCTL = "/usr/bin/systemctl"
_SHOWN = ("LoadState", "ActiveState", "SubState", "ExecMainCode", "ExecMainStatus", "ExecMainStartTimestampMonotonic")
_PAUSES = (0.5, 2.0, 5.0)
_KILLED = 2  # CLD_KILLED; 3 is the same with a core dump
_TAIL_BYTES = 16_384
#: Of each job that was started; older ones are removed.
_OUTPUTS_KEPT = 40

#: What must not be cut off by an ordinary shutdown: systemd asks it to end by a signal that does nothing, and waits.
#: A power button pressed for half an hour's hang still works.
_FINISHES = ("KillSignal=SIGCONT", "TimeoutStopSec=30min", "SendSIGHUP=no")


@dataclass(slots=True)
class _Heard:
    """How much a job had written when it was last seen to have written more; ``at`` on the clock nobody can set."""

    size: int
    at: float


class Units:
    """``outputs`` is a folder of root's for what the jobs print."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs
        self._heard: dict[str, _Heard] = {}
        self._clock = SystemClock()

    def start(self, attempt: str, job: Job) -> None:
        """Start it unless it runs.

        Raises:
            MachineError: systemd could not start it.
        """
        status = self.observe(attempt, job)
        if status.state is JobState.RUNNING:
            return
        unit = _unit(attempt, job)
        if status.state is JobState.ENDED:
            self._forget(unit)
        self._make_room()
        self._heard.pop(unit, None)
        try:
            output(["/usr/bin/systemd-run", *self._properties(unit, job), "--", *JOBS[job]])
        except MachineError:
            # systemd-run also fails when the job itself failed in its first instant; that one has an end to be seen.
            if self.observe(attempt, job).state is JobState.ABSENT:
                raise

    def observe(self, attempt: str, job: Job) -> JobStatus:
        """Where it stands.

        Raises:
            MachineError: systemd could not be asked.
        """
        unit = _unit(attempt, job)
        found = _show(unit)
        if found["LoadState"] != "loaded" or (found["ActiveState"], found["SubState"]) == ("inactive", "dead"):
            return JobStatus(JobState.ABSENT)
        if found["SubState"] == "exited" or found["ActiveState"] == "failed":
            code = int(found["ExecMainStatus"] or 0)
            return JobStatus(JobState.ENDED, exit_code=-code if _was_killed(found) else code, tail=self._tail(unit))
        return JobStatus(JobState.RUNNING, silent_seconds=self._silence(unit, found))

    def stop(self, attempt: str, job: Job) -> None:
        """End it.

        Raises:
            MachineError: systemd could not end it.
        """
        self._forget(_unit(attempt, job))

    def end_leftovers(self) -> None:
        """End what jobs that are over have left running, such as a key agent that some maintainer script woke up.

        A shutdown would wait for it as patiently as for dpkg.

        Raises:
            MachineError: systemd could not be asked.
        """
        output([_SYSTEMCTL, "kill", "--signal=SIGTERM", f"{_PREFIX}*.service"], codes=(0, 1))

    def _make_room(self) -> None:
        self._outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
        by_age = sorted(self._outputs.glob("*.log"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_age[_OUTPUTS_KEPT - 1 :]:
            old.unlink(missing_ok=True)

    def _forget(self, unit: str) -> None:
        # Of what failed systemd keeps the result until it is told not to; of what is not there it says so.
        output([_SYSTEMCTL, "stop", unit], codes=(0, 5))
        output([_SYSTEMCTL, "reset-failed", unit], codes=(0, 1))

    def _properties(self, unit: str, job: Job) -> list[str]:
        properties = [
            f"Description=Harmony Fleet: {job.value} of the packages",
            "RemainAfterExit=yes",  # how it ended stays readable until the next boot
            f"StandardOutput=truncate:{self._output(unit)}",
            # Not the file once more: two places in one file would write over each other's words.
            "StandardError=inherit",
            # When memory runs out the kernel ends one process; systemd must not end dpkg because of it.
            "OOMPolicy=continue",
            "UMask=0022",
            *(_FINISHES if job is not Job.UPDATE else ()),
        ]
        return [
            "--quiet",
            "--no-ask-password",
            f"--unit={unit}",
            "--service-type=exec",
            *(f"--property={each}" for each in properties),
            *(f"--setenv={name}={value}" for name, value in ENVIRONMENT.items()),
        ]

    def _output(self, unit: str) -> Path:
        return self._outputs / f"{unit.removesuffix('.service')}.log"

    def _silence(self, unit: str, found: dict[str, str]) -> float:
        """A job that an earlier updater watched is judged by its file, whose time is on a clock that people set: never
        more than the job is old.
        """
        size, written = self._written(unit)
        heard = self._heard.get(unit)
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        if heard is None:
            age = self._clock.monotonic() - int(found["ExecMainStartTimestampMonotonic"] or 0) / 1e6
            silent = min(self._clock.now() - written, age)
            heard = self._heard[unit] = _Heard(size, now - max(0.0, silent))
        elif heard.size != size:
            heard = self._heard[unit] = _Heard(size, now)
        return now - heard.at

    def _size(self, unit: str) -> int:
        return self._written(unit)[0]

    def _written(self, unit: str) -> tuple[int, float]:
        """Bytes of the output, and when the last of them were written."""
        try:
            found = self._output(unit).stat()
        except OSError:
            return 0, 0.0
        return found.st_size, found.st_mtime

    def _tail(self, unit: str) -> str:
        try:
            with self._output(unit).open("rb") as file:
                file.seek(max(0, self._size(unit) - _TAIL_BYTES))
                text = file.read(_TAIL_BYTES).decode(errors="replace")
        except OSError:
            return ""
        return printable(without_colours(text).replace("\r", "\n").expandtabs(1))[-MAX_TAIL_CHARS:].strip()


def _unit(attempt: str, job: Job) -> str:
    return f"{_PREFIX}{attempt}-{job.value}.service"


def _show(unit: str) -> dict[str, str]:
    text = _answer([_SYSTEMCTL, "show", f"--property={','.join(_SHOWN)}", unit])
    found = dict(line.partition("=")[::2] for line in text.splitlines())
    return {name: found.get(name, "") for name in _SHOWN}


def _answer(command: Sequence[str]) -> str:
    """systemd does not answer while it replaces itself, as its own upgrade makes it do; that is over in a moment."""
    for pause in _PAUSES:
        with contextlib.suppress(MachineError):
            return output(command)
        time.sleep(pause)
    return output(command)


def _was_killed(found: dict[str, str]) -> bool:
    return int(found["ExecMainCode"] or 0) >= _KILLED
