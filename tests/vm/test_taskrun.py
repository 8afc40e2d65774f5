"""From ``fleetctl apply`` to a verified reboot: a real control plane, a release set up on a Debian, apt, Podman."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from devices.models import Connectivity, Device
from devices.services import group_create, token_create
from fleet.core import clock
from harness.control_plane import ControlPlane
from harness.vm import packages
from harness.vm.device import RELEASE, UPDATER_UNIT, unpack
from harness.vm.nspawn import Machine
from harness.vm.packages import Repository
from harness.waiting import wait_until
from rollouts.models import Target
from tasks.models import Phase, TaskRun
from tests.integration.ctl.cli import Fleetctl
from tests.vm.containers import import_web
from upgrades.models import Attempt

EXAMPLE = Path("docs/examples/upgrade.yaml")
PASSWORD = "correct horse"
SECONDS = 180.0
STEPS = ["accepted", "preflight", "update", "simulate", "upgrade", "audit", "reboot", "verify"]
CONTAINER = """\
apiVersion: fleet.nationtech.io/v1alpha1
kind: Deployment
metadata: {name: web}
spec:
  allowedGroups: [lab]
  targetSelector: {matchLabels: {role: analyzer}}
  score:
    type: PodmanV0
    data: {services: [{name: web, image: "localhost/web:1.0", ports: ["8080:8080"]}]}
"""


@dataclass
class Site:
    """A control plane and one device that was set up as a person would."""

    control_plane: ControlPlane
    fleetctl: Fleetctl
    machine: Machine
    address: str

    def device(self) -> Device:
        return Device.objects.get(name="edge-1")

    def run(self) -> TaskRun:
        return TaskRun.objects.get(name="upgrade-analyzers")

    def wait_for_run(self, phase: str) -> TaskRun:
        """Raises TimeoutError with what device and control plane say."""
        try:
            wait_until(lambda: self.run().phase == phase, seconds=SECONDS, what=f"the run is {phase}", every=0.3)
        except TimeoutError as error:
            said = self.machine.run("fleet-agent", "status", check=False).stdout
            told = self.machine.journal(UPDATER_UNIT)
            raise TimeoutError(f"{error}\n{self.run().phase}: {self.run().message}\n{said}\n{told}") from None
        return self.run()


@pytest.fixture
def site(bare: Path, archive: Path, control_plane: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    cache.clear()
    with ExitStack() as stack:
        machine = stack.enter_context(Machine([bare], tmp_path / "edge-1"))
        unpack(archive, machine)
        repository = Repository(tmp_path / "repository")
        repository.publish(packages.good("2"))
        (machine.root / "root/old").mkdir()
        old = packages.good("1").build(machine.root / "root/old")
        machine.start()
        machine.run("dpkg", "--install", f"/root/old/{old.name}")
        line = stack.enter_context(repository.served(machine.cable.host))
        (machine.root / "etc/apt/sources.list").write_text(f"{line}\n")
        address = control_plane.web(host=machine.cable.host)
        control_plane.worker()
        control_plane.beat()
        User.objects.create_superuser("ada", password=PASSWORD)
        fleetctl = Fleetctl(address, tmp_path / "config")
        done = fleetctl("login", "--username", "ada", "--password-stdin", stdin=f"{PASSWORD}\n")
        assert done.code == 0, done.stderr
        yield Site(control_plane, fleetctl, machine, address)


def _enrol(site: Site) -> str:
    """What ``fleet-agent setup`` printed."""
    _, token = token_create(
        name="lab",
        expires_at=clock.now() + timedelta(hours=1),
        use_limit=1,
        labels={"role": "analyzer"},
        groups=[group_create(name="lab", actor=None)],
        actor=None,
    )
    (site.machine.root / "root/token").write_text(token)
    options = ["--url", site.address, "--device-id", "edge-1", "--token-file", "/root/token"]
    said = site.machine.run(f"{RELEASE}/fleet-agent", "setup", *options).stdout
    wait_until(
        lambda: "AptFullUpgradeV1" in site.device().capabilities, seconds=60, what="the control plane knows the updater"
    )
    return said


@pytest.mark.clause("SYS-8", "TSK-1", "AGT-13")
@pytest.mark.database(transaction=True)
def test_a_task_run_upgrades_a_device_and_proves_it(site: Site) -> None:
    said = _enrol(site)
    assert "this device is set up" in said
    again = site.machine.run(f"{RELEASE}/fleet-agent", "setup").stdout
    assert again.splitlines()[-1] == "nothing had to be done"
    assert site.machine.run(f"{RELEASE}/fleet-agent", "setup", "--check").stdout.endswith("nothing differs\n")

    import_web(site.machine)
    applied = site.fleetctl("apply", "-f", "-", stdin=CONTAINER)
    assert applied.code == 0, applied.stderr
    targets = Target.objects.filter(device_name="edge-1", state="converged")
    wait_until(targets.exists, seconds=60, what="the container runs", every=0.3)

    before = site.device().boot_id
    applied = site.fleetctl("apply", "-f", str(EXAMPLE))
    assert applied.code == 0, applied.stderr
    run = site.wait_for_run(Phase.COMPLETED)
    assert run.message == "Done: 1 device completed"
    assert site.machine.run("dpkg-query", "--show", "harmony-good").stdout.split() == ["harmony-good", "2"]
    wait_until(lambda: site.device().boot_id != before, seconds=60, what="the new boot is known")
    assert site.device().boot_id == site.machine.boot_id()
    _has_whole_journal(site)
    wait_until(lambda: _is_served(site), seconds=60, what="the container runs after the reboot")


def _is_served(site: Site) -> bool:
    ask = ["/root/image/busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/busybox"]
    return site.machine.run(*ask, check=False).returncode == 0


def _has_whole_journal(site: Site) -> None:
    attempt = Attempt.objects.get()
    last = "verify"
    wait_until(lambda: attempt.journal.filter(step=last, event="ended").exists(), seconds=60, what="the whole journal")
    numbers = list(attempt.journal.values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    assert list(dict.fromkeys(attempt.journal.values_list("step", flat=True))) == STEPS


@pytest.mark.clause("SYS-3", "TSK-4")
@pytest.mark.database(transaction=True)
def test_the_network_is_gone_during_and_after_the_upgrade(site: Site) -> None:
    _enrol(site)
    assert site.fleetctl("apply", "-f", str(EXAMPLE)).code == 0
    begun = Attempt.objects.filter(journal__step="upgrade")
    wait_until(begun.exists, seconds=SECONDS, what="apt has begun", every=0.1)
    site.machine.cable.unplug()
    wait_until(lambda: site.machine.boots > 1, seconds=SECONDS, what="the device has rebooted by itself", every=0.01)
    site.machine.cable.unplug()  # nspawn has laid a new cable
    assert site.run().phase == Phase.RUNNING
    site.machine.cable.plug()
    site.wait_for_run(Phase.COMPLETED)
    _has_whole_journal(site)


@pytest.mark.clause("TSK-4")
@pytest.mark.database(transaction=True)
def test_a_device_that_comes_back_after_the_deadline_begins_nothing(site: Site) -> None:
    _enrol(site)
    site.machine.cable.unplug()
    assert site.fleetctl("apply", "-f", "-", stdin=EXAMPLE.read_text().replace("21600", "60")).code == 0
    TaskRun.objects.filter(name="upgrade-analyzers").update(deadline_at=clock.now() + timedelta(seconds=3))
    Attempt.objects.update(begin_until=clock.now() + timedelta(seconds=3))
    run = site.wait_for_run(Phase.FAILED)
    assert "deadline" in run.message
    site.machine.cable.plug()
    wait_until(
        lambda: site.device().heartbeat.connectivity == Connectivity.ONLINE, seconds=SECONDS, what="the device is back"
    )
    assert "no attempt is known" in site.machine.run("fleet-updater", "status").stdout
    assert site.machine.boots == 1
