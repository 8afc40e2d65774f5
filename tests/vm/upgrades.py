"""A site for agent upgrades: devices whose agents run, a control plane that answers them, releases over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.vm.depot import Depot
from harness.vm.nspawn import Machine, small_disk
from harness.vm.releases import Archive
from harness.vm.upgradable import UpgradableDevice
from tests.support.authority import Authority
from tests.support.fake_control import FakeControlPlane

#: What the tests upgrade to.
NEXT = "9.0.0"


@dataclass
class UpgradeSite:
    """One device and what surrounds it. ``before``: where its ``active`` led when it was set up."""

    device: UpgradableDevice
    control: FakeControlPlane
    depot: Depot
    before: str

    def offer(self, archive: Archive, **other: object) -> None:
        """The device's next attempt is about this archive; ``other`` says something else than the truth."""
        self.device.target = archive.target(self.depot.offer(archive.path), **other)


@contextmanager
def upgrade_site(layers: list[Path], folder: Path, mounts: Mapping[str, str]) -> Iterator[UpgradeSite]:
    """The machine is on and its agent has reported. ``mounts``: small file systems by path, with their size."""
    with ExitStack() as stack:
        machine = stack.enter_context(Machine(layers, folder / "edge-1"))
        for target, size in mounts.items():
            small_disk(machine, target, size)
        machine.start()
        host = machine.cable.host  # the address is there when the machine is
        authority = Authority(folder / "authority")
        control = stack.enter_context(FakeControlPlane(host=host))
        depot = stack.enter_context(Depot(host, authority.server_context(host)))
        device = UpgradableDevice(machine)
        device.enrol(control.url, control.credential, authority.ca_file)
        device.wait_for_agent()
        yield UpgradeSite(device, control, depot, device.active())
