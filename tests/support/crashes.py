"""Ends an updater at a chosen moment: before or after any call of its machine, or around any write to its journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.updater.attempt import Attempt
from agent.updater.journal import Record, line
from agent.updater.simulated import SimulatedMachine
from agent.updater.store import JournalStore

#: Calls that only read a clock, or answer the agent; no work is cut off in them.
_WITHOUT_MOMENTS = ("boot_id", "boottime", "now", "can_upgrade", "can_replace")


class Killed(BaseException):
    """SIGKILL: nothing of the process runs any more."""


@dataclass
class Fuse:
    """Burns down by one at each moment and kills at the last one; ``moments`` are the names of those that passed."""

    left: int = -1
    moments: list[str] = field(default_factory=list)

    def moment(self, name: str) -> None:
        self.moments.append(name)
        self.left -= 1
        if self.left == 0:
            raise Killed(name)


class FusedMachine:
    """A machine whose every call has a moment before and one after it."""

    def __init__(self, machine: SimulatedMachine, fuse: Fuse) -> None:
        self._machine = machine
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._machine, name)
        return found if name in _WITHOUT_MOMENTS or not callable(found) else self._fused(name, found)

    def _fused(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def fused(*arguments: Any) -> Any:
            self._fuse.moment(f"before {name}")
            result = call(*arguments)
            self._fuse.moment(f"after {name}")
            return result

        return fused


class FusedStore(JournalStore):
    """Every record has a moment before it is written, one when half of its line is, and one after it."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder, sync=False)
        self._fuse = fuse

    def append(self, attempt: Attempt, record: Record) -> Attempt:
        what = f"{record.step} {record.event}"
        self._fuse.moment(f"before {what}")
        try:
            self._fuse.moment(f"half of {what}")
        except Killed:
            self._write_half(attempt, record)
            raise
        written = super().append(attempt, record)
        self._fuse.moment(f"after {what}")
        return written

    def _write_half(self, attempt: Attempt, record: Record) -> None:
        path = self._path(attempt.uid)
        assert path is not None
        text = line(record)
        with path.open("ab") as file:
            file.write(text[: len(text) // 2])
