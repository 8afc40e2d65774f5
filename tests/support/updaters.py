"""A device with an updater on a simulated machine, for tests: killed, powered off and started again at will."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from agent.updater.attempt import Attempt
from agent.updater.executor import SystemUpgrade
from agent.updater.machine import Machine
from agent.updater.simulated import Faults, SimulatedMachine
from agent.updater.store import JournalStore
from agent.updater.updater import Release, Updater
from agent.wire.messages import AttemptState
from agent.wire.updater import AnyReply, Begin, GetStatus, NoteContact, UpdaterStatus
from tests.support.crashes import Fuse, FusedMachine, FusedStore
from tests.support.devices import ManualClock

UID = str(uuid.UUID(int=0xA11))
OTHER = str(uuid.UUID(int=0xB22))
BUILT = 1_790_000_000.0


@dataclass
class UpdatingDevice:
    """``agent`` is whether an agent does its part: gives new seconds when asked, notes contact after each boot.

    ``stride``: the least seconds between two looks of the worker, for what takes days. ``fuse``: kills it.
    ``sync``: records are really flushed.
    """

    folder: Path
    faults: Faults = field(default_factory=Faults)
    agent: bool = True
    kernel: str = "6.1.0-1-amd64"
    remaining_seconds: int = 600
    stride: float = 0.0
    fuse: Fuse | None = None
    sync: bool = False

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.machine = SimulatedMachine(self.clock, faults=self.faults, kernel=self.kernel)
        self.start()

    def start(self) -> None:
        """A new process of the updater, as after a kill or a boot."""
        fuse = self.fuse
        self.store = FusedStore(self.folder, fuse) if fuse else JournalStore(self.folder, sync=self.sync)
        self.store.open()
        machine: Machine = cast("Machine", FusedMachine(self.machine, fuse)) if fuse else self.machine
        self.updater = Updater(machine, self.store, [SystemUpgrade(machine)], Release(built=BUILT))
        self.boots = self.machine.boots

    def cut_power(self) -> None:
        """The whole machine goes off and on again."""
        self.machine.cut_power()
        self.start()

    def begin(self, uid: str = UID, seconds: int | None = None) -> AnyReply:
        """What an agent sends with an attempt."""
        seconds = self.remaining_seconds if seconds is None else seconds
        return self.updater.answer(Begin(attempt=uid, executor="systemUpgradeV1", remaining_seconds=seconds))

    def attempt(self, uid: str = UID) -> Attempt:
        """As the journal on disk has it."""
        found = self.store.attempt(uid)
        assert found is not None, f"no attempt {uid}"
        return found

    @property
    def state(self) -> AttemptState:
        return self.attempt().state

    @property
    def message(self) -> str:
        return self.attempt().last.message

    def standing(self) -> str:
        """The sentence that the agent hears."""
        reply = self.updater.answer(GetStatus())
        assert isinstance(reply, UpdaterStatus)
        return next(item.message for item in reply.attempts if item.attempt == UID)

    def contact(self) -> None:
        """The control plane acknowledged a report of the agent in this boot."""
        self.updater.answer(NoteContact(boot_id=self.machine.boot_id()))

    def turn(self) -> None:
        """One look of the worker, and the time until its next; a machine that was rebooted starts the updater again."""
        pause = self.updater.work()
        self.clock.forward(max(pause, self.stride))
        if self.machine.boots != self.boots:
            while not self.machine.is_up:
                self.clock.forward(1.0)
            self.start()
        if self.agent and self.store.attempt(UID) is not None:
            self._be_agent()

    def run(self, until: Callable[[], bool] | None = None, *, turns: int = 5_000) -> None:
        """Turn after turn, until the attempt is over or ``until`` holds."""
        for _ in range(turns):
            if until() if until else not self.attempt().is_open:
                return
            self.turn()
        raise AssertionError(f"still {self.state}: {self.message}")

    def run_to(self, step: str, event: str) -> None:
        """Until the journal's last record is this one."""
        self.run(lambda: (self.attempt().last.step, self.attempt().last.event) == (step, event))

    def told(self) -> list[str]:
        """The journal as ``step event``."""
        return [f"{record.step} {record.event}" for record in self.attempt().records]

    def _be_agent(self) -> None:
        attempt = self.attempt()
        if not attempt.has_begun and attempt.deadline.boot_id != self.machine.boot_id():
            self.begin()
        self.contact()
