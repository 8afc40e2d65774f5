"""Disposable devices: a Debian on which a real release was set up once, and as many machines on top as tests want."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.vm import packages
from harness.vm.device import RELEASE, Device, unpack
from harness.vm.nspawn import Machine, small_disk
from harness.vm.packages import Package, Repository
from harness.vm.releases import Archive, Workshop
from harness.vm.tree import Recipe, tree
from tests.support.needs import cannot, need, need_root
from tests.vm.upgrades import NEXT, UpgradeSite, upgrade_site

KINDS = (
    packages.good,
    packages.failing,
    packages.hanging,
    packages.large,
    packages.hostile_to_podman,
    packages.filling,
)


@pytest.fixture(scope="session")
def bare() -> Path:
    """The tree of a Debian on which nobody has set anything up."""
    need_root("systemd-nspawn and debootstrap")
    need("systemd-nspawn", "debootstrap")
    return tree(Recipe())


@pytest.fixture(scope="session")
def archive() -> Path:
    """The release that ``make test-vm`` has just built."""
    path = os.environ.get("FLEET_RELEASE")
    if not path:
        cannot("the release under test is not built: run make test-vm")
    return Path(path)


@pytest.fixture(scope="session")
def set_up(bare: Path, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Layers of a machine on which ``fleet-agent setup`` has run and version 1 of every package is installed.

    Made once for all workers. The agent is not started: most tests play it.
    """
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "set-up"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "done").exists():
            _set_up(bare, archive, shared)
    return [shared / "written", bare]


def _set_up(bare: Path, archive: Path, folder: Path) -> None:
    with Machine([bare], folder) as machine:
        unpack(archive, machine)
        old = machine.root / "root/packages"
        old.mkdir()
        debs = [kind("1").build(old) for kind in KINDS]
        machine.start()
        machine.run("dpkg", "--install", *(f"/root/packages/{deb.name}" for deb in debs))
        machine.run(f"{RELEASE}/fleet-agent", "setup", "--url", "http://127.0.0.1:9")
        machine.run("systemctl", "disable", "--now", "harmony-fleet-agent.service")
        machine.run("systemctl", "poweroff")
        machine.wait_until_off()
    shutil.rmtree(machine.written / "root/packages")
    (folder / "done").touch()


@pytest.fixture
def new_device(set_up: list[Path], tmp_path: Path) -> Iterator[Callable[..., Device]]:
    """A running device that can upgrade to version 2 of these packages; several have a number each."""
    with ExitStack() as stack:
        made: list[Device] = []

        def make(*news: Package, mounts: dict[str, str] | None = None) -> Device:
            folder = tmp_path / f"device-{len(made)}"
            machine = stack.enter_context(Machine(set_up, folder))
            for target, size in (mounts or {}).items():
                small_disk(machine, target, size)
            repository = Repository(folder / "repository")
            repository.publish(*news)
            machine.start()
            line = stack.enter_context(repository.served(machine.cable.host))
            (machine.root / "etc/apt/sources.list").write_text(f"{line}\n")
            made.append(Device(machine))
            return made[-1]

        yield make


@pytest.fixture(scope="session")
def workshop(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(archive, tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="session")
def candidate(workshop: Workshop) -> Archive:
    """A good release of another version."""
    return workshop.pack(NEXT)


@pytest.fixture
def new_site(set_up: list[Path], tmp_path: Path) -> Iterator[Callable[..., UpgradeSite]]:
    """A device whose agent runs, with small file systems where ``mounts`` says so; several have a number each."""
    with ExitStack() as stack:
        made: list[UpgradeSite] = []

        def make(mounts: dict[str, str] | None = None) -> UpgradeSite:
            folder = tmp_path / f"site-{len(made)}"
            made.append(stack.enter_context(upgrade_site(set_up, folder, mounts or {})))
            return made[-1]

        yield make


@pytest.fixture
def upgrades(new_site: Callable[..., UpgradeSite]) -> UpgradeSite:
    return new_site()
