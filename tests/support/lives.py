"""An agent that may be killed at any moment: ``fleet-agent run`` as a process of its own, many lives in a row.

The processes are forked from one that has done the imports, so that a life begins in a tenth of a second. A life can
be told to end itself around a write to its state folder; Python's own audit events tell it when that is, so the agent
needs no hook for it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from harness.waiting import wait_until
from tests.support import forked


@dataclass(frozen=True)
class Write:
    """A moment of the durable write of a file: ``opened``, ``written`` (beside it), or ``renamed`` (not yet synced)."""

    file: str
    moment: str


class AgentLives:
    """One device's agent. The first command enrols it."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._processes = forked.processes()
        self._process: BaseProcess | None = None

    def enrol(self, token: Path) -> None:
        process = self._begin(["enroll", "--token-file", str(token)], None)
        process.join(30)
        assert process.exitcode == 0

    def start(self, dies_at: Write | None = None) -> None:
        """Begin a life."""
        self._process = self._begin(["run"], dies_at)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone. From any thread."""
        pid = self._process.pid if self._process is not None else None
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(pid), seconds=10, what="the agent is gone", every=0.005)

    def is_alive(self) -> bool:
        """Until the last of its threads is gone and it lets go of its files; a zombie may still hold them."""
        return self._process is not None and psutil.pid_exists(self._process.pid)

    def _begin(self, command: Sequence[str], dies_at: Write | None) -> BaseProcess:
        process = self._processes.Process(target=_live, args=(["--config", str(self._config), *command], dies_at))
        process.start()
        return process


def _live(arguments: list[str], dies_at: Write | None) -> None:
    from agent.cli import main  # noqa: PLC0415  (it is imported already where this runs)

    if dies_at is not None:
        _die_at(dies_at)
    sys.exit(main(arguments))


def _die_at(write: Write) -> None:
    """End this process without a word at a moment of a write."""
    renamed: list[Path] = []

    def end() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and Path(str(arguments[1])).match(write.file):
            renamed.append(Path(str(arguments[1])))
            if write.moment == "written":
                end()
        elif event == "open" and isinstance(arguments[0], str | Path):
            path = Path(arguments[0])
            temporary = path.with_name(path.name[1:].rpartition(".")[0] or path.name)
            if write.moment == "opened" and path.name.startswith(".") and temporary.match(write.file):
                end()
            if write.moment == "renamed" and any(path == place.parent for place in renamed):
                end()

    sys.addaudithook(watch)
