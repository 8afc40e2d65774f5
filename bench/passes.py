"""A pass over ten unchanged deployments on real Podman, against the bare call that it cannot do without."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podman.api.client import APIClient

from agent import config
from agent.app import Agent, build
from agent.reconcile.reconciler import InlineWorkers
from agent.runtime.host import LinuxHost
from agent.runtime.podman import PodmanRuntime
from agent.wire.messages import DeploymentState
from bench import fleet
from bench.figures import Figure
from bench.installation import Installation
from demo import devices as demo_devices
from demo.podman import IsolatedPodman
from harness.waiting import wait_until
from rollouts import services

DEPLOYMENTS = 10
ROUNDS = 40
IMAGE = "localhost/bench:1"
NAME = "passes-1"


class CountingRuntime(PodmanRuntime):
    """Podman, with a count of its requests."""

    def __init__(self, socket: str) -> None:
        super().__init__(socket)
        self.calls = 0

    def _call(self, method: str, path: str, **options: Any) -> Any:
        self.calls += 1
        return super()._call(method, path, **options)


def measure(installation: Installation) -> list[Figure]:
    """Passes and bare calls in turns, median of each; the number of requests of one pass."""
    server = installation.control_plane.web()
    with IsolatedPodman(installation.folder / "podman") as podman:
        podman.build(IMAGE, command=["sleep", "100000"])
        device = demo_devices.prepare(installation.folder / "devices", NAME, server=server, socket=podman.socket)
        demo_devices.enrol(device, fleet.token(NAME, labels={"role": "passes"}))
        runtime = CountingRuntime(str(podman.socket))
        agent = build(config.load(device.config), runtime=runtime, host=LinuxHost(), workers=InlineWorkers())
        _converge(agent)
        return _measured(agent, runtime, podman.socket)


def _converge(agent: Agent) -> None:
    for number in range(DEPLOYMENTS):
        fleet.applied(f"passes-{number}", "passes", IMAGE)
    services.sweep()

    def all_have() -> bool:
        agent.poll()
        agent.reconcile()
        states = [entry.state for entry in agent.ledger.deployments()]
        return states == [DeploymentState.CONVERGED] * DEPLOYMENTS

    wait_until(all_have, seconds=180, what="ten deployments have converged", every=1.0)
    time.sleep(agent.config.agent.settle_seconds)  # at rest the list alone is believed


def _measured(agent: Agent, runtime: CountingRuntime, socket: Path) -> list[Figure]:
    client = APIClient(base_url=f"unix://{socket}", timeout=30)

    def bare() -> object:
        return client.get("/containers/json", params={"all": "true"}).json()

    passes, calls = [], []
    runtime.calls = 0
    for _ in range(ROUNDS):
        passes.append(_seconds(agent.reconcile) * 1000)
        calls.append(_seconds(bare) * 1000)
    print(f"a pass made {runtime.calls / ROUNDS:g} requests", file=sys.stderr)
    measured, floor = statistics.median(passes), statistics.median(calls)
    return [
        Figure("requests of a pass over ten unchanged deployments", runtime.calls / ROUNDS, 3, "", 1, False, "limit"),
        Figure("time of that pass", measured, floor, "ms", 1.5, False, "the bare list of containers"),
    ]


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start
