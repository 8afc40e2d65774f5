"""A device whose agent is replaced in play: real core and policy, simulated host, killed and powered off at will."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from agent.releases.description import place
from agent.updater.binary.executor import AgentUpgrades
from agent.updater.binary.host import Host
from agent.updater.binary.simulated import HostFaults, SimulatedHost
from agent.updater.executor import Executor, SystemUpgrade
from agent.updater.machine import Machine
from agent.updater.simulated import SimulatedMachine
from agent.updater.store import JournalStore
from agent.updater.updater import Release, Updater
from agent.wire.manifest import AgentUpgrade
from agent.wire.updater import AnyReply, BeginAgentUpgrade, GetStatus, NoteReady, Standing, UpdaterStatus
from tests.support.crashes import FusedMachine, FusedStore
from tests.support.updaters import BUILT, UID, UpdatingDevice


def target(version: str = "2.0.0", **other: object) -> AgentUpgrade:
    digest = f"{version.replace('.', ''):0<64}"
    fields = {"architecture": "amd64", "url": "https://example.com/a", "maxSize": 25_000_000, "sha256": digest}
    return AgentUpgrade(**{"version": version, **fields, **other})  # type: ignore[arg-type]


@dataclass
class UpgradingAgent(UpdatingDevice):
    """``host_faults`` may be changed at any time. ``is_fit``: a candidate that runs says that it is ready."""

    host_faults: HostFaults = field(default_factory=HostFaults)
    target: AgentUpgrade = field(default_factory=target)
    is_fit: bool = True

    def __post_init__(self) -> None:
        self.host: SimulatedHost | None = None
        super().__post_init__()

    def start(self) -> None:
        if self.host is None:
            self.host = SimulatedHost(self.clock, faults=self.host_faults)
        fuse = self.fuse
        self.store = FusedStore(self.folder, fuse) if fuse else JournalStore(self.folder, sync=self.sync)
        self.store.open()
        machine = self.machine
        host = cast("Host", FusedMachine(cast("SimulatedMachine", self.host), fuse)) if fuse else self.host
        executors: list[Executor] = [SystemUpgrade(cast("Machine", machine)), AgentUpgrades(host)]
        self.updater = Updater(machine, self.store, executors, Release(built=BUILT))
        self.boots = machine.boots

    def cut_power(self) -> None:
        self.the_host.boot()
        super().cut_power()

    @property
    def the_host(self) -> SimulatedHost:
        assert self.host is not None
        return self.host

    @property
    def candidate(self) -> str:
        return place(self.target)

    def begin(self, uid: str = UID, seconds: int | None = None) -> AnyReply:
        seconds = self.remaining_seconds if seconds is None else seconds
        return self.updater.answer(BeginAgentUpgrade(uid, seconds, self.target))

    def upgrade(self, uid: str) -> None:
        """A further attempt, to its end."""
        self.begin(uid)
        while self.attempt(uid).is_open:
            self.turn()
            self.say_ready(uid)

    def say_ready(self, uid: str = UID) -> AnyReply | None:
        """What the running agent sends when it may, as soon as it is asked."""
        standing = self.standing_of(uid)
        runs = self.the_host.running_version
        if self.is_fit and standing.needs_ready and runs == standing.version:
            return self.updater.answer(NoteReady(uid, runs))
        return None

    def standing_of(self, uid: str = UID) -> Standing:
        reply = self.updater.answer(GetStatus())
        assert isinstance(reply, UpdaterStatus)
        return next(item for item in reply.attempts if item.attempt == uid)

    def _be_agent(self) -> None:
        super()._be_agent()
        self.say_ready()
