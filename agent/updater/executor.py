"""What carries out one kind of attempt; the updater around it keeps the journal and answers the agent.

Another kind of attempt is another executor with steps and decisions of its own; journal, recovery after a crash,
mutual exclusion and socket stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from agent.updater import policy
from agent.updater.actions import Deed, Kernels, Look, Reboot, Seen, Sight, StartJob, StopJob, Wait, Write
from agent.updater.attempt import Attempt
from agent.updater.machine import Job, Machine, MachineError
from agent.wire.messages import APT_FULL_UPGRADE_V1
from agent.wire.updater import SYSTEM_UPGRADE_V1


class Executor(Protocol):
    """``capabilities`` are what the device says it can do; ``name`` what an attempt asks for."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Sequence[str]: ...

    def is_available(self) -> bool:
        """Whether this device has what it takes."""

    def decide(self, attempt: Attempt, seen: Seen) -> Write | Wait:
        """The next thing for an open attempt, having looked at whatever that depends on. Never raises MachineError."""

    def do(self, attempt: Attempt, deed: Deed) -> None:
        """What belongs to a record that has been written. Raises MachineError."""

    def stand_by(self, attempt: Attempt) -> str:
        """No record can be written. What the device must not wait for is done, and said in a sentence. Raises
        MachineError.
        """


class SystemUpgrade:
    """``systemUpgradeV1``: the fixed sequence of SYS-1. Looks with a machine, decides with :mod:`policy`."""

    name = SYSTEM_UPGRADE_V1
    capabilities = (APT_FULL_UPGRADE_V1,)

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def is_available(self) -> bool:
        try:
            return self._machine.can_upgrade()
        except MachineError:
            return False

    def decide(self, attempt: Attempt, seen: Seen) -> Write | Wait:
        """Looking costs time and programs, so only what the decision asks for is looked at."""
        while True:
            action = policy.decide(attempt, seen)
            if not isinstance(action, Look):
                return action
            try:
                seen = self._look(attempt, action, seen)
            except MachineError as error:
                seen = replace(seen, trouble=str(error))

    def do(self, attempt: Attempt, deed: Deed) -> None:
        if isinstance(deed, StartJob):
            self._machine.start(attempt.uid, deed.job)
        elif isinstance(deed, StopJob):
            self._machine.stop(attempt.uid, deed.job)
        elif isinstance(deed, Reboot):
            self._machine.reboot()

    def stand_by(self, attempt: Attempt) -> str:
        """apt goes on without a journal; nothing else has to go on."""
        return ""

    def _look(self, attempt: Attempt, look: Look, seen: Seen) -> Seen:
        machine = self._machine
        match look.sight:
            case Sight.PACKAGES:
                return replace(seen, packages=machine.package_problems())
            case Sight.LOCK:
                return replace(seen, lock=machine.lock_holder())
            case Sight.VOLUMES:
                return replace(seen, volumes=machine.volumes())
            case Sight.SIMULATION:
                return replace(seen, simulation=machine.simulation())
            case Sight.JOB:
                return replace(seen, job=machine.observe(attempt.uid, look.job or Job.UPGRADE))
            case Sight.KERNELS:
                return replace(seen, kernels=Kernels(machine.running_kernel(), machine.expected_kernel()))
