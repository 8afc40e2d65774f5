"""What the tests of the whole agent share."""

from __future__ import annotations

from agent.runtime.base import State
from agent.runtime.simulated import Faults, SimulatedRuntime
from tests.support.devices import Edge
from tests.support.fake_control import service

API = service("api", "r.example/api:1")
MIGRATE = service("migrate", "r.example/migrate:1")


def faults(edge: Edge) -> Faults:
    assert isinstance(edge.runtime, SimulatedRuntime)
    return edge.runtime.faults


def names(edge: Edge) -> dict[str, State]:
    return {container.name: container.state for container in edge.runtime.containers()}
