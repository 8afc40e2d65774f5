"""An agent under the test's own hand: its steps are called by the test, its clock may be too."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from agent.app import Agent, build, enrol
from agent.config import Config, parse
from agent.engine import Engine
from agent.reconcile.reconciler import InlineWorkers, Workers
from agent.runtime.base import ContainerSpec, Host, Runtime
from agent.runtime.simulated import SimulatedHost, SimulatedRuntime
from tests.support.fake_control import FakeControlPlane


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now: float = 1_796_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def boottime(self) -> float:
        return self._now

    def forward(self, seconds: float) -> None:
        self._now += seconds


class Watched(SimulatedRuntime):
    """Remembers with what containers were created."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=clock)
        self.clock = clock
        self.created: list[ContainerSpec] = []

    def create(self, spec: ContainerSpec) -> str:
        self.created.append(spec)
        return super().create(spec)

    def env(self, name: str) -> dict[str, str]:
        """Of the newest container of this name."""
        return dict(next(spec.env for spec in reversed(self.created) if spec.name == name))


class Edge:
    """One device: its state folder, control plane, runtime, and the agent that :meth:`boot` makes of them."""

    def __init__(
        self,
        folder: Path,
        control: FakeControlPlane,
        *,
        runtime: Runtime | None = None,
        host: Host | None = None,
        clock: ManualClock | None = None,
        workers: Workers | None = None,
        **settings: float,
    ) -> None:
        self.clock = clock or ManualClock()
        self.control = control
        self.runtime = runtime or SimulatedRuntime(clock=self.clock)
        self._host = host or SimulatedHost()
        self._own_clock = None if runtime is not None and clock is None else self.clock
        self._workers = workers or InlineWorkers()
        self.config = configuration(folder, control, **settings)
        self.state, self.secrets = folder, Path(self.config.secrets.directory)
        enrol(self.config, control.token)
        self.boot()

    def boot(self) -> None:
        """Start the agent (again), as after a crash: nothing is kept but what is on disk."""
        self.agent: Agent = build(
            self.config,
            runtime=self.runtime,
            host=self._host,
            clock=self._own_clock,
            workers=self._workers,
            dice=random.Random(1),  # noqa: S311  (repeatable, not secret)
        )
        self.engine = Engine(self.agent, random.Random(1))  # noqa: S311

    def put_secret(self, name: str, key: str, value: str) -> Path:
        """A secret on the device itself, for nobody but the agent."""
        path = self.secrets / name / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n", newline="")
        path.chmod(0o600)
        return path

    def go(self, *, retry: bool = True) -> None:
        """Poll, one pass, report."""
        self.agent.poll()
        self.agent.reconcile(retry=retry)
        self.agent.report()

    def settle(self, seconds: float = 10.0) -> None:
        """Let the settle time pass on the test's clock, and look again."""
        self.clock.forward(seconds)
        self.go(retry=False)

    def until(self, condition: Callable[[], bool], *, within: float = 60.0, step: float = 0.5) -> None:
        """Call the engine as its threads would, moving the test's clock, until something holds."""
        end = self.clock.monotonic() + within
        while not condition():
            assert self.clock.monotonic() < end, f"not within {within:g} s: {self.control.reports[-1:]}"
            self.engine.network()
            self.engine.local()
            self.engine.network()
            self.clock.forward(step)


def configuration(folder: Path, control: FakeControlPlane, **settings: float) -> Config:
    timing = {"pull_jitter_seconds": 0, "settle_seconds": 10} | settings
    lines = "\n".join(f"{key} = {value}" for key, value in timing.items())
    return parse(
        f"""
[server]
url = "{control.url}"
[device]
id = "{control.device}"
labels = {{ role = "analyzer" }}
[secrets]
directory = "{folder}.secrets"
[agent]
state_dir = "{folder}"
{lines}
"""
    )
