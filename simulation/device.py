"""One simulated device: the agent as it runs on a real one, on containers that are only written down."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.app import build, enrol
from agent.clock import Clock
from agent.config import Config
from agent.control import ControlPlane
from agent.engine import Engine
from agent.reconcile.reconciler import InlineWorkers
from agent.runtime.simulated import Faults, SimulatedHost, SimulatedRuntime
from agent.store import Identity, Store
from agent.updater.binary.simulated import HostFaults
from agent.updater.simulated import Faults as UpgradeFaults
from agent.updater.simulated import Pace
from agent.wire.messages import DeploymentReport, DeploymentState
from simulation.cast import Character
from simulation.faults import LIES, ClockOff, Duplicating, Lie, Lying, Reordering, Slow, Unplugged
from simulation.updater import SimulatedUpdater

#: While the device is off, or no agent runs on it.
BOOT_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class World:
    """What all devices of a simulation share."""

    clock: Clock
    sleep: Callable[[float], None]
    dice: random.Random
    pace: Pace = field(default_factory=Pace)


class SimulatedDevice:
    """Its :meth:`step` is what the two threads of a real agent do, in turn."""

    def __init__(
        self, config: Config, character: Character, world: World, connect: Callable[..., ControlPlane]
    ) -> None:
        self.config = config
        self.character = character
        self._world = world
        self._connect = connect
        self._upgrade_due = 0.0
        self._is_wanted = True
        self.clock: Clock = ClockOff(world.clock, character.clock_seconds) if character.clock_seconds else world.clock
        self.updater = SimulatedUpdater(
            config.state_dir / "updater",
            self.clock,
            name=self.name,
            faults=_of_upgrades(character),
            pace=world.pace,
            host_faults=HostFaults(dies=["*"] if character.fails_agents else []),
        )

    @property
    def name(self) -> str:
        return self.config.device.id

    def enrol(self, token: str) -> None:
        """Exchange the token for a credential, without faults, then put the agent together.

        Raises:
            ControlError: with the control plane's sentence.
        """
        enrol(self.config, token, self._connect())
        self.boot()

    def adopt(self, uid: str, credential: str) -> None:
        """Be a device that was enrolled in another way."""
        Store(self.config.state_dir).save_identity(Identity(self.name, uid, self.config.server.url), credential)
        self.boot()

    def boot(self) -> None:
        """The device is started, and its agent; its containers are new."""
        self._boots = self.updater.boots()
        self.runtime = SimulatedRuntime(
            clock=self.clock, faults=_of_containers(self.character), sleep=self._world.sleep
        )
        self._start_agent()

    def _start_agent(self) -> None:
        """Put the agent together that is installed now, with what its state folder has; its containers went on."""
        self._starts = self.updater.starts()
        self.agent = build(
            self.config,
            runtime=self.runtime,
            host=SimulatedHost(boot_id=self.updater.machine.boot_id),
            clock=self.clock,
            workers=InlineWorkers(),
            updater=self.updater,
            dice=self._world.dice,
            version=self.updater.host.running_version,
        )
        self.agent.control = self._with_faults(self._connect(credential=self.agent.store.credential))
        self.engine = Engine(self.agent, self._world.dice)
        self.agent.upgrades.on_wanted = self._want
        self._want()

    def _want(self) -> None:
        self._is_wanted = True

    def step(self) -> float:
        """Poll, work, upgrade and report as far as they are due; the seconds until something is."""
        boots, starts = self.updater.boots(), self.updater.starts()
        if not self.updater.machine.is_up or not self.updater.host.running_version:
            return BOOT_LOOK_SECONDS
        if boots != self._boots:
            self.boot()
        elif starts != self._starts:
            self._start_agent()
        self.engine.network()
        self.engine.local()
        return min(self._upgrade(), self.engine.network(), self.engine.local())

    def _upgrade(self) -> float:
        """Not at every step: without an attempt there is nothing to see."""
        now = self.clock.monotonic()
        if now >= self._upgrade_due or self._is_wanted:
            self._is_wanted = False
            self._upgrade_due = now + self.engine.upgrading()
        return max(0.0, self._upgrade_due - now)

    def is_offline(self) -> bool:
        return self.character.is_offline(self._world.clock.monotonic())

    def deployments(self) -> list[DeploymentReport]:
        """What its agent knows, before any lie."""
        return self.agent.ledger.deployments()

    def is_in(self, state: DeploymentState) -> bool:
        """Whether every deployment that it has is in this state, and it has one."""
        states = {item.state for item in self.deployments()}
        return states == {state}

    def _with_faults(self, control: ControlPlane) -> ControlPlane:
        """The network outermost: what a device lies or repeats goes through it as everything does."""
        character = self.character
        if character.offline_seconds:
            control = Unplugged(control, self.is_offline)
        if character.slow_seconds:
            control = Slow(control, character.slow_seconds, self._world.sleep)
        if character.duplicates:
            control = Duplicating(control)
        if character.reorders:
            control = Reordering(control)
        if character.lie:
            control = Lying(control, LIES[character.lie])
        return control


def _of_upgrades(character: Character) -> UpgradeFaults:
    """An upgrade of theirs fails in the middle and leaves no package half installed."""
    return UpgradeFaults(exit_codes={"upgrade": 100}, breaks=False) if character.fails_upgrades else UpgradeFaults()


def _of_containers(character: Character) -> Faults:
    """Who claims convergence without any has containers that exit at once."""
    return Faults(exit_services=["*"]) if character.lie is Lie.CONVERGED else Faults()
