"""Transient units of systemd: they outlive the updater, and a restarted updater finds them again (SYS-5)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.clock import SystemClock
from agent.updater.debian.commands import output
from agent.updater.machine import MAX_TAIL_CHARS, JobState, JobStatus, MachineError
from agent.wording import printable, without_colours

SYSTEMCTL = "/usr/bin/systemctl"
_SHOWN = ("LoadState", "ActiveState", "SubState", "ExecMainCode", "ExecMainStatus", "ExecMainStartTimestampMonotonic")
_PAUSES = (0.5, 2.0, 5.0)
_KILLED = 2  # CLD_KILLED; 3 is the same with a core dump
_TAIL_BYTES = 16_384
#: Of each unit that was started; older ones are removed.
_OUTPUTS_KEPT = 40


@dataclass(frozen=True, slots=True)
class Unit:
    """``name`` without ``.service``; ``properties`` as systemd-run takes them, besides those of all units here."""

    name: str
    command: Sequence[str]
    properties: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Heard:
    """How much a unit had written when it was last seen to have written more; ``at`` on the clock nobody can set."""

    size: int
    at: float


class TransientUnits:
    """``outputs`` is a folder of root's for what the units print."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs
        self._heard: dict[str, _Heard] = {}
        self._clock = SystemClock()

    def start(self, unit: Unit) -> None:
        """Start it unless it runs; one that has ended is started anew.

        Raises:
            MachineError: systemd could not start it.
        """
        status = self.observe(unit.name)
        if status.state is JobState.RUNNING:
            return
        if status.state is JobState.ENDED:
            self.stop(unit.name)
        self._make_room()
        self._heard.pop(unit.name, None)
        try:
            output(["/usr/bin/systemd-run", *self._options(unit), "--", *unit.command])
        except MachineError:
            # systemd-run also fails when the unit itself failed in its first instant; that one has an end to be seen.
            if self.observe(unit.name).state is JobState.ABSENT:
                raise

    def observe(self, name: str) -> JobStatus:
        """Where it stands.

        Raises:
            MachineError: systemd could not be asked.
        """
        found = show(f"{name}.service", _SHOWN)
        if found["LoadState"] != "loaded" or (found["ActiveState"], found["SubState"]) == ("inactive", "dead"):
            return JobStatus(JobState.ABSENT)
        if found["SubState"] == "exited" or found["ActiveState"] == "failed":
            code = int(found["ExecMainStatus"] or 0)
            return JobStatus(JobState.ENDED, exit_code=-code if _was_killed(found) else code, tail=self._tail(name))
        return JobStatus(JobState.RUNNING, silent_seconds=self._silence(name, found), tail=self._tail(name))

    def stop(self, name: str) -> None:
        """End it, and forget how it ended.

        Raises:
            MachineError: systemd could not end it.
        """
        # Of what failed systemd keeps the result until it is told not to; of what is not there it says so.
        output([SYSTEMCTL, "stop", f"{name}.service"], codes=(0, 5))
        output([SYSTEMCTL, "reset-failed", f"{name}.service"], codes=(0, 1))

    def signal_all(self, prefix: str) -> None:
        """Ask every process of the units whose names begin so to end.

        Raises:
            MachineError: systemd could not be asked.
        """
        output([SYSTEMCTL, "kill", "--signal=SIGTERM", f"{prefix}*.service"], codes=(0, 1))

    def _make_room(self) -> None:
        self._outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
        by_age = sorted(self._outputs.glob("*.log"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_age[_OUTPUTS_KEPT - 1 :]:
            old.unlink(missing_ok=True)

    def _options(self, unit: Unit) -> list[str]:
        properties = [
            "RemainAfterExit=yes",  # how it ended stays readable until the next boot
            f"StandardOutput=truncate:{self._output(unit.name)}",
            # Not the file once more: two places in one file would write over each other's words.
            "StandardError=inherit",
            *unit.properties,
        ]
        return [
            "--quiet",
            "--no-ask-password",
            f"--unit={unit.name}.service",
            "--service-type=exec",
            *(f"--property={each}" for each in properties),
            *(f"--setenv={name}={value}" for name, value in unit.environment.items()),
        ]

    def _output(self, name: str) -> Path:
        return self._outputs / f"{name}.log"

    def _silence(self, name: str, found: Mapping[str, str]) -> float:
        """A unit that an earlier updater watched is judged by its file, whose time is on a clock that people set: never
        more than the unit is old.
        """
        size, written = self._written(name)
        heard = self._heard.get(name)
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        if heard is None:
            age = self._clock.monotonic() - int(found["ExecMainStartTimestampMonotonic"] or 0) / 1e6
            silent = min(self._clock.now() - written, age)
            heard = self._heard[name] = _Heard(size, now - max(0.0, silent))
        elif heard.size != size:
            heard = self._heard[name] = _Heard(size, now)
        return now - heard.at

    def _written(self, name: str) -> tuple[int, float]:
        """Bytes of the output, and when the last of them were written."""
        try:
            found = self._output(name).stat()
        except OSError:
            return 0, 0.0
        return found.st_size, found.st_mtime

    def _tail(self, name: str) -> str:
        try:
            with self._output(name).open("rb") as file:
                file.seek(max(0, self._written(name)[0] - _TAIL_BYTES))
                text = file.read(_TAIL_BYTES).decode(errors="replace")
        except OSError:
            return ""
        return printable(without_colours(text).replace("\r", "\n").expandtabs(1))[-MAX_TAIL_CHARS:].strip()


def show(unit: str, properties: Sequence[str]) -> dict[str, str]:
    """What systemd says of a unit; empty words for what it does not say. Raises MachineError."""
    text = _answer([SYSTEMCTL, "show", f"--property={','.join(properties)}", unit])
    found = dict(line.partition("=")[::2] for line in text.splitlines())
    return {name: found.get(name, "") for name in properties}


def _answer(command: Sequence[str]) -> str:
    """systemd does not answer while it replaces itself, as its own upgrade makes it do; that is over in a moment."""
    for pause in _PAUSES:
        with contextlib.suppress(MachineError):
            return output(command)
        time.sleep(pause)
    return output(command)


def _was_killed(found: Mapping[str, str]) -> bool:
    return int(found["ExecMainCode"] or 0) >= _KILLED
