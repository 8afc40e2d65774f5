"""From ``fleetctl release push`` to an agent that reports: a real control plane behind TLS, its shelf, real devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.cache import cache

from demo.registry import LoopbackRegistry
from devices.models import Device
from devices.services import group_create, token_create
from fleet.core import clock
from harness.control_plane import ControlPlane
from harness.vm.device import RELEASE, UPDATER_UNIT, unpack
from harness.vm.nspawn import Machine
from harness.vm.releases import Archive
from harness.vm.tls import TlsFront
from harness.vm.upgradable import UpgradableDevice
from harness.waiting import wait_until
from releases.models import ShelvedRelease
from tasks.models import TaskRun
from tests.integration.ctl.cli import Fleetctl
from tests.support.authority import Authority
from tests.support.oci_registry import Publisher
from tests.vm.upgrades import NEXT
from upgrades.models import Attempt, DesiredAgent

PASSWORD = "correct horse"
SECONDS = 180.0


@dataclass
class Fleet:
    """A control plane that a device reaches by HTTPS only."""

    fleetctl: Fleetctl
    device: UpgradableDevice
    url: str
    authority: Authority

    def wait_for(self, what: str, holds: object) -> None:
        """Raises TimeoutError with what device and control plane say."""
        try:
            wait_until(holds, seconds=SECONDS, what=what, every=0.3)  # type: ignore[arg-type]
        except TimeoutError as error:
            runs = [(run.phase, run.message) for run in TaskRun.objects.all()]
            wanted = [(each.state, each.message) for each in DesiredAgent.objects.all()]
            told = self.device.machine.journal(UPDATER_UNIT)
            raise TimeoutError(f"{error}\n{runs}\n{wanted}\n{told}") from None


@pytest.fixture
def fleet(bare: Path, archive: Path, control_plane: ControlPlane, tmp_path: Path) -> Iterator[Fleet]:
    cache.clear()
    with ExitStack() as stack:
        machine = stack.enter_context(Machine([bare], tmp_path / "edge-1"))
        unpack(archive, machine)
        machine.start()
        address = control_plane.web()
        control_plane.worker()
        control_plane.beat()
        authority = Authority(tmp_path / "authority")
        host = machine.cable.host
        front = stack.enter_context(TlsFront(host, int(address.rpartition(":")[2]), authority.server_context(host)))
        (machine.root / "root/ca.pem").write_bytes(authority.ca_file.read_bytes())
        User.objects.create_superuser("ada", password=PASSWORD)
        fleetctl = Fleetctl(address, tmp_path / "config")
        assert fleetctl("login", "--username", "ada", "--password-stdin", stdin=f"{PASSWORD}\n").code == 0
        made = Fleet(fleetctl, UpgradableDevice(machine), f"https://{front.address}", authority)
        _enrol(made)
        yield made


def _enrol(fleet: Fleet) -> None:
    _, token = token_create(
        name="lab",
        expires_at=clock.now() + timedelta(hours=1),
        use_limit=1,
        labels={"role": "analyzer"},
        groups=[group_create(name="lab", actor=None)],
        actor=None,
    )
    machine = fleet.device.machine
    (machine.root / "root/token").write_text(token)
    (machine.root / "etc/harmony-fleet").mkdir()
    (machine.root / "etc/harmony-fleet/ca.pem").write_bytes((machine.root / "root/ca.pem").read_bytes())
    options = ["--url", fleet.url, "--device-id", "edge-1", "--token-file", "/root/token"]
    machine.run(f"{RELEASE}/fleet-agent", "setup", *options, "--ca-file", "/etc/harmony-fleet/ca.pem")
    fleet.wait_for("the updater is known", lambda: "AgentUpgradeV1" in Device.objects.get().capabilities)


@pytest.mark.clause("UPG-1", "UPG-2", "UPG-10")
@pytest.mark.database(transaction=True)
def test_a_release_is_pushed_to_the_shelf_and_rolled_out(fleet: Fleet, candidate: Archive) -> None:
    pushed = fleet.fleetctl("release", "push", str(candidate.path))
    assert pushed.code == 0, pushed.stderr
    shelved = ShelvedRelease.objects.get()
    target = candidate.target(f"{fleet.url}/api/agent/v1/releases/{shelved.sha256}")
    assert shelved.sha256 == target.sha256
    manifest = {
        "apiVersion": "fleet.nationtech.io/v1alpha1",
        "kind": "AgentRelease",
        "metadata": {"name": "next"},
        "spec": {
            "allowedGroups": ["lab"],
            "targetSelector": {"matchLabels": {"role": "analyzer"}},
            "version": NEXT,
            "artifacts": [
                {"architecture": "amd64", "url": target.url, "maxSize": target.maxSize, "sha256": target.sha256}
            ],
            "deadlineSeconds": 3600,
        },
    }
    applied = fleet.fleetctl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert applied.code == 0, applied.stderr
    fleet.wait_for("it is rolled out", lambda: TaskRun.objects.get().phase == "Completed")
    assert Device.objects.get().agent_version == NEXT
    assert fleet.device.version() == NEXT
    attempt = Attempt.objects.get()
    assert attempt.state == "completed"
    fleet.wait_for("the whole journal", lambda: attempt.journal.filter(step="readiness", event="ended").exists())
    numbers = list(attempt.journal.values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.clause("UPG-1", "UPG-9")
@pytest.mark.database(transaction=True)
def test_an_archive_in_a_registry_is_fetched_from_there(fleet: Fleet, candidate: Archive, tmp_path: Path) -> None:
    with LoopbackRegistry(tmp_path / "registry") as registry:
        port = int(registry.address.rpartition(":")[2])
        Publisher(f"http://{registry.address}", "fleet/agent").archive(NEXT, candidate.path.read_bytes())
        host = fleet.device.machine.cable.host
        with TlsFront(host, port, fleet.authority.server_context(host)) as front:
            target = candidate.target(f"oci://{front.address}/fleet/agent:{NEXT}")
            spec = {name: getattr(target, name) for name in ("version", "architecture", "url", "maxSize", "sha256")}
            manifest = {
                "apiVersion": "fleet.nationtech.io/v1alpha1",
                "kind": "Device",
                "metadata": {"name": "edge-1"},
                "spec": {"agentUpgrade": spec},
            }
            applied = fleet.fleetctl("apply", "-f", "-", stdin=json.dumps(manifest))
            assert applied.code == 0, applied.stderr
            fleet.wait_for("it runs", lambda: DesiredAgent.objects.get().state == "current")
    assert fleet.device.version() == NEXT
    assert Attempt.objects.get().state == "completed"
