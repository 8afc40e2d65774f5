"""One digest per revision, with agents that talk to the real entrance over HTTP (DEP-18)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent.runtime.base import Image, Login
from agent.runtime.simulated import SimulatedRuntime
from devices.models import Device
from devices.services import device_set_canary, drain_facts, token_create
from fleet.core import clock
from rollouts import services
from rollouts.models import Phase
from tests.integration.rollouts.world import World
from tests.support.devices import Edge, ManualClock
from tests.support.fake_control import FakeControlPlane

TAG, REPOSITORY = "registry.example.com/api:1.0", "registry.example.com/api"
A, B = "a" * 64, "b" * 64


@dataclass
class Server:
    """Where an edge enrols: the real control plane in the place of the fake one."""

    url: str
    device: str
    token: str
    reports: list[Any] = field(default_factory=list)


class Pulling(SimulatedRuntime):
    """Pulls tags from a registry in which they move."""

    def __init__(self, registry: dict[str, str], **more: Any) -> None:
        super().__init__(**more)
        self.registry = registry

    def pull(self, reference: str, login: Login | None = None) -> Image:
        with self._lock:
            self._saved.images[reference] = reference.partition("@sha256:")[2] or self.registry[reference]
            found = self.image(reference)
        assert found is not None
        return found


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    made = World()
    with clock.reading(lambda: made.now):
        yield made


@dataclass
class Fleet:
    """Edges that pull from one registry; a round lets each poll, pass and report, and the control plane decide."""

    world: World
    url: str
    folder: Path
    registry: dict[str, str]
    edges: dict[str, Edge] = field(default_factory=dict)

    def join(self, name: str, *, canary: bool = False) -> None:
        _, token = token_create(
            name=name,
            expires_at=self.world.now + timedelta(hours=1),
            use_limit=1,
            labels={"role": "analyzer"},
            groups=[self.world.group("lab")],
            actor=None,
        )
        server = cast("FakeControlPlane", Server(self.url, name, token))
        hands = ManualClock(self.world.now.timestamp())
        edge = Edge(self.folder / name, server, runtime=Pulling(self.registry, clock=hands), clock=hands)
        self.edges[name] = edge
        device_set_canary(device=Device.objects.get(name=name), canary=canary, actor=None)

    def round(self, *names: str) -> None:
        for name in names or self.edges:
            self.edges[name].go()
            self.edges[name].clock.forward(15)
            self.edges[name].go()
        drain_facts(limit=100)
        self.world.drain()

    def runs(self, name: str) -> set[str]:
        """The ids of the containers' images."""
        return {each.image_id for each in self.edges[name].runtime.containers()}

    def containers(self, name: str) -> set[str]:
        return {each.id for each in self.edges[name].runtime.containers()}


@pytest.mark.clause("DEP-18")
@pytest.mark.slow
def test_devices_run_the_canarys_digest_although_the_tag_moved(world: World, live_server: Any, tmp_path: Path) -> None:
    fleet = Fleet(world, live_server.url, tmp_path, {TAG: A})
    fleet.join("edge-1", canary=True)
    fleet.join("edge-2", canary=True)
    fleet.join("edge-3")
    deployment = world.rollout()
    fleet.edges["edge-1"].go()
    fleet.registry[TAG] = B  # somebody pushes over the tag
    fleet.round("edge-1", "edge-2")
    assert (fleet.runs("edge-1"), fleet.runs("edge-2")) == ({A}, {B})
    assert world.revision(deployment).phase == Phase.CANARY
    before = fleet.containers("edge-1")
    fleet.round()
    fleet.round()
    assert [fleet.runs(name) for name in fleet.edges] == [{A}] * 3
    assert fleet.containers("edge-1") == before  # who proved it restarts nothing
    revision = world.revision(deployment)
    assert (revision.phase, revision.converged) == (Phase.CONVERGED, 3)

    fleet.join("edge-4")
    services.deployment_retarget(deployment=deployment, actor=None)
    world.evaluate(deployment)
    fleet.round()
    fleet.round()
    assert fleet.runs("edge-4") == {A}
    assert fleet.containers("edge-1") == before
    assert world.revision(deployment).converged == 4
