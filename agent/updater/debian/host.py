"""A device with systemd whose agent can be replaced: the real :class:`agent.updater.binary.host.Host`."""

from __future__ import annotations

import platform
from collections.abc import Collection
from pathlib import Path

from agent.facts import ARCHITECTURES
from agent.updater.binary.host import AgentStatus, Trial
from agent.updater.debian import agent_unit
from agent.updater.debian.disk import Disk
from agent.updater.debian.trials import Trials

_NEEDED = ("/usr/bin/systemd-run", "/run/systemd/system")


class DebianHost:
    """``state_dir`` is the updater's; ``agent_user`` runs whatever comes from a candidate. Made anew, it goes on where
    the one before it was.
    """

    def __init__(self, state_dir: Path, agent_user: str) -> None:
        self._disk = Disk(state_dir, agent_user)
        self._trials = Trials(state_dir / "output", self._disk, agent_user)
        self.active, self.switch = self._disk.active, self._disk.switch
        self.places, self.release, self.damage = self._disk.places, self._disk.release, self._disk.damage
        self.volumes = self._disk.volumes
        self.start, self.observe, self.stop = self._trials.start, self._trials.observe, self._trials.stop
        self.verify, self.unpack = self._disk.verify, self._disk.unpack

    def can_replace(self) -> bool:
        return all(Path(path).exists() for path in _NEEDED) and self._disk.can_replace()

    def architecture(self) -> str:
        machine = platform.machine()
        return ARCHITECTURES.get(machine, machine)

    def stop_agent(self) -> None:
        agent_unit.stop()

    def start_agent(self) -> None:
        agent_unit.start()

    def agent(self) -> AgentStatus:
        return agent_unit.status()

    def tidy(self, attempt: str, keep: Collection[str]) -> None:
        for trial in Trial:
            self._trials.stop(attempt, trial)
        self._disk.tidy(attempt, keep)
