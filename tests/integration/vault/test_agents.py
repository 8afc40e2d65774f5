"""Agents that ask the real control plane for the values that their containers need (AGT-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.app import Agent, build
from agent.config import parse
from agent.control import ControlPlane
from agent.reconcile.reconciler import InlineWorkers
from agent.runtime.simulated import SimulatedHost
from agent.store import Identity, Store
from devices.models import Device
from rollouts import services
from rollouts.models import LogRequest
from tests.integration.vault.kit import LOGIN, Vault
from tests.support import in_process
from tests.support.devices import ManualClock, Watched
from vault.services import secret_delete

VALUE = 'it\'s "quoted"\nand — ü $HOME'

pytestmark = [pytest.mark.clause("AGT-10"), pytest.mark.database]


class Edge:
    """A device of the fleet with its agent; time, threads and containers are the test's."""

    def __init__(self, folder: Path, device: Device) -> None:
        text = f"""
[server]
url = "{in_process.URL}"
[device]
id = "{device.name}"
[secrets]
directory = "{folder}/secrets"
[agent]
state_dir = "{folder}/state"
pull_jitter_seconds = 0
"""
        config = parse(text)
        identity = Identity(device.name, str(device.uid), in_process.URL)
        Store(config.state_dir).save_identity(identity, credential=device.name)
        self.runtime = Watched(ManualClock())
        self.agent: Agent = build(
            config,
            runtime=self.runtime,
            host=SimulatedHost(),
            clock=self.runtime.clock,
            control=ControlPlane(in_process.URL, credential=lambda: device.name, session=in_process.session()),
            workers=InlineWorkers(),
        )

    def go(self) -> str:
        """Poll and pass; what would be reported."""
        self.agent.poll()
        self.agent.reconcile()
        return "; ".join(entry.message for entry in self.agent.ledger.deployments())


def test_a_value_comes_exactly_and_a_retarget_brings_the_new_one(vault: Vault, tmp_path: Path) -> None:
    vault.put(password=VALUE)
    edge = Edge(tmp_path, vault.device("edge-1"))
    deployment = vault.rollout("db/password")
    edge.go()
    assert edge.runtime.env("api") == {"V0": VALUE}

    vault.put(password="rotated")
    edge.go()
    assert edge.runtime.env("api") == {"V0": VALUE}, "not watched"
    services.deployment_retarget(deployment=deployment, actor=None)
    vault.world.evaluate(deployment)
    edge.go()
    assert edge.runtime.env("api") == {"V0": "rotated"}


def test_what_the_control_plane_does_not_have_is_named_and_nothing_is_started(vault: Vault, tmp_path: Path) -> None:
    vault.put(password="hunter2")
    edge = Edge(tmp_path, vault.device("edge-1"))
    deployment = vault.rollout("db/password", "db/nowhere")
    assert edge.go() == (
        f"preflight failed: secret db/nowhere for V1 of api: {tmp_path}/secrets/db/nowhere does not exist, "
        "and the control plane has no such secret for this device"
    )
    assert edge.runtime.created == []
    vault.put(password="hunter2", nowhere="found")
    edge.go()
    assert edge.runtime.env("api") == {"V0": "hunter2", "V1": "found"}
    secret_delete(namespace="default", name="db", actor=None)
    before = edge.runtime.containers()
    services.deployment_retarget(deployment=deployment, actor=None)
    vault.world.evaluate(deployment)
    assert edge.go().startswith("preflight failed: secret db/password for V0 of api: ")
    assert edge.runtime.containers() == before


@pytest.mark.clause("AGT-15")
def test_a_login_that_the_control_plane_has_lets_a_device_in(vault: Vault, tmp_path: Path) -> None:
    edge = Edge(tmp_path, vault.device("edge-1"))
    edge.runtime.faults.private = ["registry.example.com:5000/*"]
    vault.rollout()
    assert "; there is no login for registry.example.com:5000; run: fleetctl secret set-registry NAME " in edge.go()
    vault.put("site", registry="registry.example.com:5000", **LOGIN)
    edge.runtime.clock.forward(60)
    edge.go()
    assert [container.name for container in edge.runtime.containers()] == ["api"]


@pytest.mark.clause("AGT-16")
def test_a_log_that_somebody_asked_for_arrives_without_the_values(vault: Vault, tmp_path: Path) -> None:
    vault.put(password="start of")
    edge = Edge(tmp_path, vault.device("edge-1"))
    deployment = vault.rollout("db/password")
    edge.go()
    asked = services.logs_request(deployment=deployment, lines=10, actor=None)
    gone = services.logs_request(deployment=deployment, container="api", lines=10, actor=None)
    edge.agent.poll()
    gone.delete()
    while edge.agent.logs.has_replies():
        edge.agent.answer()
    found = LogRequest.objects.get(pk=asked.pk)
    assert (found.state, found.text, found.problem) == ("answered", "simulated [secret db/password] api", "")
    edge.agent.poll()
    assert not edge.agent.logs.has_replies()
