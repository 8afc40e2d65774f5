"""A simulated fleet and its control plane in one thread, on one clock that the test moves: an hour is seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import yaml

import tasks.services
import upgrades.services
from agent.config import Timing
from agent.updater.simulated import Pace
from devices.models import Device
from devices.services import device_set_canary, drain_facts, sweep_connectivity
from fleet.core import door
from rollouts import selectors, services
from rollouts.models import Deployment, Revision
from simulation import enlisting
from simulation.cast import Knobs
from simulation.device import SimulatedDevice
from simulation.fleet import Script, SimulatedFleet
from tasks.models import TaskRun
from tests.support import in_process
from tests.support.devices import ManualClock
from tests.support.upgrading_agents import target

GROUP = "lab"
POLL_SECONDS, HEARTBEAT_SECONDS, SETTLE_SECONDS = 20.0, 60.0, 10.0
REAL = Pace()
#: How often workers look, and how far the clock is moved between two looks.
LOOK_SECONDS = 5.0


class Rehearsal:
    """``fleet`` is enrolled and has reported once."""

    def __init__(self, folder: Path, devices: int, knobs: Knobs, *, seed: int = 1, pace: Pace = REAL) -> None:
        self.clock = ManualClock()
        timing = Timing(poll_seconds=POLL_SECONDS, heartbeat_seconds=HEARTBEAT_SECONDS, settle_seconds=SETTLE_SECONDS)
        script = Script(devices, in_process.URL, folder, knobs=knobs, pace=pace, timing=timing, seed=seed, threads=1)
        self.fleet = SimulatedFleet(script, clock=self.clock, sleep=self.clock.forward, session=in_process.session())

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)

    def begin(self) -> None:
        """Enrol everybody, and let everybody who can call for the first time."""
        with enlisting.admitted(self.fleet.script.names(), group=GROUP) as token:
            for device in self.fleet.devices:
                device.enrol(token)
        self.fleet.schedule()
        self.pass_time(POLL_SECONDS)

    def pass_time(self, seconds: float) -> None:
        """Devices and workers go on for so long."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            self.clock.forward(LOOK_SECONDS)
            self.fleet.do_due()
            self._work()

    def until(self, condition: Callable[[], bool], *, within: float) -> None:
        """Go on until something holds."""
        end = self.clock.monotonic() + within
        while not condition():
            assert self.clock.monotonic() < end, "it did not come about in time"
            self.pass_time(LOOK_SECONDS)

    def _work(self) -> None:
        drain_facts()
        while services.drain_deployments(limit=500):
            pass
        while tasks.services.drain_attempts(limit=500):
            pass
        upgrades.services.agents_evaluate()
        sweep_connectivity()
        services.sweep()
        tasks.services.sweep()

    # People --------------------------------------------------------------------------------------------------------

    def apply(self, image: str = "registry.example.com/api:1.0") -> Deployment:
        """A deployment for every simulated device."""
        manifest = {
            "apiVersion": "fleet.nationtech.io/v1alpha1",
            "kind": "Deployment",
            "metadata": {"name": "api"},
            "spec": {
                "allowedGroups": [GROUP],
                "targetSelector": {"matchLabels": enlisting.MARK},
                "score": {"type": "PodmanV0", "data": {"services": [{"name": "api", "image": image}]}},
            },
        }
        (admitted,) = door.admit(yaml.safe_dump(manifest))
        deployment = services.deployment_apply(manifest=admitted, actor=None).deployment
        assert deployment is not None
        return deployment

    def upgrade(self, *, deadline_seconds: int = 21_600) -> TaskRun:
        """A task run that upgrades every simulated device."""
        manifest = {
            "apiVersion": "fleet.nationtech.io/v1alpha1",
            "kind": "TaskRun",
            "metadata": {"name": "upgrade"},
            "spec": {
                "allowedGroups": [GROUP],
                "targetSelector": {"matchLabels": enlisting.MARK},
                "deadlineSeconds": deadline_seconds,
                "systemUpgradeV1": {},
            },
        }
        (admitted,) = door.admit(yaml.safe_dump(manifest))
        return TaskRun.objects.get(pk=tasks.services.taskrun_apply(manifest=admitted, actor=None).pk)

    def replace_agents(self, version: str) -> None:
        """Every simulated device shall run this agent."""
        for device in Device.objects.all():
            upgrades.services.agent_upgrade_set(
                device=device, target=target(version, architecture=device.architecture), actor=None
            )

    def make_canary(self, device: SimulatedDevice) -> None:
        device_set_canary(device=Device.objects.get(name=device.name), canary=True, actor=None)

    def revision(self, deployment: Deployment) -> Revision:
        return selectors.current_revision(Deployment.objects.get(pk=deployment.pk))

    def states(self, deployment: Deployment) -> dict[str, str]:
        return dict(self.revision(deployment).targets.values_list("device_name", "state"))

    def some(self, condition: Callable[[SimulatedDevice], bool]) -> list[SimulatedDevice]:
        return [device for device in self.fleet.devices if condition(device)]
