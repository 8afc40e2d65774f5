"""A simulated device's updater: the real core on machine and host that upgrade nothing, asked without a socket."""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent import facts
from agent.clock import Clock
from agent.updater.binary.executor import AgentUpgrades
from agent.updater.binary.simulated import HostFaults, SimulatedHost
from agent.updater.executor import SystemUpgrade
from agent.updater.simulated import Faults, Pace, SimulatedMachine
from agent.updater.store import JournalStore
from agent.updater.updater import Updater
from agent.upgrades.client import UpdaterError, understood
from agent.version import VERSION
from agent.wire.updater import AnyReply, Request


class SimulatedUpdater:
    """It works whenever it is asked, on what was due until then; a machine that boots answers nobody.

    ``host_faults`` are those of upgrades of the agent, ``faults`` those of the operating system's.
    """

    def __init__(
        self, folder: Path, clock: Clock, *, name: str, faults: Faults, pace: Pace, host_faults: HostFaults
    ) -> None:
        self.machine = SimulatedMachine(clock, name=name, faults=faults, pace=pace)
        self.host = SimulatedHost(clock, VERSION, facts.architecture(), host_faults)
        self._folder = folder
        self._clock = clock
        self._due = 0.0
        self._start()

    def ask(self, request: Request) -> AnyReply:
        """Raises UpdaterError while the device boots."""
        self._catch_up()
        if not self.machine.is_up:
            raise UpdaterError("the device boots")
        reply = understood(msgspec.json.encode(self._updater.answer(request)))  # type: ignore[arg-type]
        self._due = 0.0
        return reply

    def boots(self) -> int:
        """How often the device was started, after what was due until now."""
        self._catch_up()
        return self.machine.boots

    def starts(self) -> int:
        """How often the agent was started, after what was due until now."""
        self._catch_up()
        return self.host.starts

    def _start(self) -> None:
        """A new process, which finds its place in the journal; nothing is flushed: power is lost only in play."""
        self._of_boot = self.machine.boots
        store = JournalStore(self._folder, sync=False)
        store.open()
        self._updater = Updater(self.machine, store, [SystemUpgrade(self.machine), AgentUpgrades(self.host)])

    def _catch_up(self) -> None:
        while self.machine.is_up and self._clock.monotonic() >= self._due:
            if self.machine.boots != self._of_boot:
                self.host.boot()
                self._start()
            self._due = self._clock.monotonic() + self._updater.work()
