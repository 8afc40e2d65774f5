"""Upgrade a Debian with a kernel of its own under qemu, and write down what happened: ``make validate-vm``.

Every scenario begins with a disk of its own on which nothing was upgraded yet. The record goes to docs/validation.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.control_plane import ControlPlane  # noqa: E402  (only after the path knows the checkout)
from harness.vm import kernels, packages, qemu  # noqa: E402
from harness.vm.device import RELEASE, UPDATER_UNIT, unpack  # noqa: E402
from harness.vm.kernels import Kernel  # noqa: E402
from harness.vm.nspawn import Machine  # noqa: E402
from harness.vm.packages import Repository  # noqa: E402
from harness.vm.qemu import HOST, Qemu, Start  # noqa: E402
from harness.vm.tree import PACKAGES, Recipe, tree  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

RECORDS = ROOT / "docs" / "validation"
#: On top of what every machine of the tests has: what a kernel package needs to make its initial file system.
RECIPE = Recipe(packages=(*PACKAGES, "initramfs-tools", "kmod", "linux-base"))
GROUP, DEVICE, RUN = "lab", "edge-1", "upgrade-analyzers"
#: Everything is about ten times slower than on a real machine.
SECONDS = 900.0
PASSWORD = "validation only"  # noqa: S105  (of a control plane that lives as long as a scenario)


@dataclass
class Scenario:
    """What is done differently, and what the run and the device must say in the end."""

    title: str
    phase: str
    says: str
    first: Start = field(default_factory=Start)
    second: Start | None = field(default_factory=Start)


@dataclass
class Outcome:
    """What is written down of a scenario."""

    scenario: Scenario
    seconds: float
    lines: list[tuple[str, str]]
    journal: str
    consoles: list[str]

    @property
    def is_good(self) -> bool:
        found = dict(self.lines)
        return found["run"].startswith(self.scenario.phase) and self.scenario.says in f"{found['run']} {self.journal}"


class Fleet:
    """A control plane on this host that the guest reaches, driven by fleetctl as a person would."""

    def __init__(self, folder: Path) -> None:
        env = {"FLEET_DATA_DIR": str(folder / "data"), "FLEET_ALLOWED_HOSTS": f"127.0.0.1,localhost,{HOST}"}
        env |= {"DJANGO_SUPERUSER_PASSWORD": PASSWORD, "FLEET_SWEEP_SECONDS": "2"}
        self.control_plane = ControlPlane(folder / "logs", env=env)
        self._folder = folder

    def start(self) -> str:
        """Its address as the guest sees it."""
        self.control_plane.manage("migrate", "--verbosity", "0")
        self.control_plane.manage("createsuperuser", "--noinput", "--username", "ada", "--email", "ada@example.com")
        self.address = self.control_plane.web()
        self.control_plane.worker()
        self.control_plane.beat()
        self.fleetctl("login", "--username", "ada", "--password-stdin", stdin=PASSWORD)
        self.fleetctl("group", "create", GROUP)
        return self.address.replace("127.0.0.1", HOST)

    def token(self) -> str:
        return self.fleetctl("token", "create", "lab", "--group", GROUP, "--label", "role=analyzer", "-o", "name")

    def fleetctl(self, *arguments: str, stdin: str | None = None) -> str:
        """Raises RuntimeError with what it said when it fails."""
        env = {**os.environ, "FLEETCTL_SERVER": self.address, "XDG_CONFIG_HOME": str(self._folder / "config")}
        command = [sys.executable, "-m", "fleet.ctl", *arguments]
        done = subprocess.run(command, env=env, cwd=ROOT, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(
                f"fleetctl {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout


SCENARIOS = (
    Scenario("A newer kernel is installed, booted and proven", "Completed", "verify ended"),
    Scenario(
        "The boot loader starts the old kernel again",
        "Failed",
        "verify failed",
        second=Start(kernel="old"),
    ),
    Scenario(
        "The clock's battery is empty: 1970 at the start",
        "Failed",
        "clock says",
        first=Start(clock="1970-01-01T00:00:00"),
        second=None,
    ),
)


EVERY = range(1, len(SCENARIOS) + 1)


def main() -> int:
    """0 when every scenario ended as it should; the record says so either way."""
    options = _parser().parse_args()
    if os.geteuid() != 0:
        print("validate-vm bootstraps machines and mounts their disks, so it must run as root", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="fleet-validate-") as folder:
        site = Site.made(Path(folder))
        outcomes = {number: site.play(SCENARIOS[number - 1], number) for number in options.scenario or EVERY}
    record = options.folder / _name(options.scenario)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("".join(_record(site, outcomes)))
    print(f"the record is {record.relative_to(ROOT) if record.is_relative_to(ROOT) else record}")
    return 0 if all(outcome.is_good for outcome in outcomes.values()) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make validate-vm", description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", type=int, choices=EVERY, action="append", help="only this one; may be repeated")
    parser.add_argument("--folder", type=Path, default=RECORDS, help="where the record goes (default: docs/validation)")
    return parser


def _name(chosen: list[int] | None) -> str:
    """Of the record; one that does not tell of everything says so."""
    which = f"-{'-'.join(map(str, chosen))}" if chosen else ""
    return f"{datetime.now(UTC):%Y-%m-%d}-qemu{which}.md"


@dataclass
class Site:
    """A disk to begin with, and what to upgrade it to; ``source`` is the commit that the release was built from."""

    folder: Path
    disk: Path
    old: Kernel
    new: Kernel
    repository: Repository
    release_digest: str
    source: str

    @classmethod
    def made(cls, folder: Path) -> Site:
        say("fetching two kernels and building the release")
        source = _output("git", "-C", str(ROOT), "log", "-1", "--format=%h %s")
        old, new = kernels.two(folder / "kernels")
        build = [sys.executable, "tools/release/build.py", "--folder", str(folder)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (archive,) = folder.glob("*.tar.gz")
        repository = Repository(folder / "repository")
        repository.publish(packages.good("2"), debs=new.packages)
        say("making the disk")
        disk = folder / "clean.img"
        _make_disk(archive, old, folder, disk)
        return cls(folder, disk, old, new, repository, hashlib.sha256(archive.read_bytes()).hexdigest(), source)

    def play(self, scenario: Scenario, number: int) -> Outcome:
        """One scenario on a copy of the disk."""
        say(f"scenario {number}: {scenario.title}")
        folder = self.folder / f"scenario-{number}"
        folder.mkdir()
        disk = folder / "disk.img"
        subprocess.run(["cp", "--sparse=always", str(self.disk), str(disk)], check=True)
        fleet = Fleet(folder)
        with ExitStack() as stack:
            stack.enter_context(fleet.control_plane)
            machine = stack.enter_context(Qemu(disk, folder))
            line = stack.enter_context(self.repository.served("127.0.0.1"))
            outcome = _play(scenario, fleet, machine, line.replace("127.0.0.1", HOST), self.old)
        disk.unlink()
        say(f"  {'as expected' if outcome.is_good else 'NOT AS EXPECTED'}: {dict(outcome.lines)['run']}")
        return outcome


def _make_disk(archive: Path, old: Kernel, folder: Path, disk: Path) -> None:
    with Machine([tree(RECIPE)], folder / "clean") as machine:
        unpack(archive, machine)
        debs = machine.root / "root/debs"
        debs.mkdir()
        for package in old.packages:
            shutil.copy(package, debs)
        packages.good("1").build(debs)
        (machine.root / "etc/initramfs-tools/conf.d").mkdir(exist_ok=True)
        # Packing is what takes longest without hardware help.
        (machine.root / "etc/initramfs-tools/conf.d/validation").write_text("MODULES=most\nCOMPRESS=gzip\n")
        qemu.prepare(machine.root)
        with qemu.chrooted(machine.root) as inside:
            names = [f"/root/debs/{deb.name}" for deb in sorted(debs.glob("*.deb"))]
            subprocess.run([*inside, "dpkg", "--install", *names], check=True, capture_output=True)
        shutil.rmtree(debs)
        qemu.make_disk(machine.root, disk)


def _play(scenario: Scenario, fleet: Fleet, machine: Qemu, source: str, old: Kernel) -> Outcome:
    began = time.monotonic()
    address = fleet.start()
    machine.start(scenario.first)
    facts = [("kernel before", machine.run("uname", "-r")), ("boot id before", _boot_id(machine))]
    facts.append(("clock at the start", machine.run("date", "--utc", "+%Y-%m-%d %H:%M UTC")))
    _set_up(fleet, machine, address, source)
    fleet.fleetctl("apply", "-f", "docs/examples/upgrade.yaml")
    if scenario.second is not None:
        second = Start(kernel=old.release) if scenario.second.kernel else scenario.second
        machine.wait_for_reboot(second, seconds=SECONDS)
    wait_until(lambda: _phase(fleet) in ("Completed", "Failed"), seconds=SECONDS, what="the run is over", every=2)
    journal = machine.run("fleet-updater", "journal", check=False)
    facts += [("kernel after", machine.run("uname", "-r")), ("boot id after", _boot_id(machine))]
    facts.append(("packages", machine.run("dpkg-query", "--show", "harmony-good", kernels.META)))
    facts.append(("dpkg --audit", machine.run("dpkg", "--audit") or "clean"))
    facts.append(("run", f"{_phase(fleet)}: {_field(fleet, 'message')}"))
    facts.append(("journalctl -u harmony-fleet-updater", _told(machine)))
    consoles = sorted(machine.console.parent.glob("console.log.*"))
    digests = [f"{path.name}: sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in consoles]
    return Outcome(scenario, time.monotonic() - began, facts, journal, digests)


def _set_up(fleet: Fleet, machine: Qemu, address: str, source: str) -> None:
    machine.run("sh", "-c", f"echo '{source}' > /etc/apt/sources.list")
    machine.run("sh", "-c", f"echo '{fleet.token().strip()}' > /root/token")
    options = ["--url", address, "--device-id", DEVICE, "--token-file", "/root/token"]
    machine.run(f"{RELEASE}/fleet-agent", "setup", *options)
    wait_until(lambda: "AptFullUpgradeV1" in _device(fleet), seconds=SECONDS, what="the updater is known", every=2)


def _device(fleet: Fleet) -> str:
    return fleet.fleetctl("get", "device", DEVICE, "-o", "yaml")


def _phase(fleet: Fleet) -> str:
    return _field(fleet, "phase")


def _field(fleet: Fleet, name: str) -> str:
    import yaml  # noqa: PLC0415  (of fleetctl)

    return str(yaml.safe_load(fleet.fleetctl("get", "taskrun", RUN, "-o", "yaml"))["status"][name])


def _boot_id(machine: Qemu) -> str:
    return machine.run("cat", "/proc/sys/kernel/random/boot_id")


def _told(machine: Qemu) -> str:
    """What an operator reads on the device."""
    return machine.run("journalctl", "--no-pager", "--output=cat", f"--unit={UPDATER_UNIT}")


# The record ----------------------------------------------------------------------------------------------------------


def _record(site: Site, outcomes: dict[int, Outcome]) -> Iterator[str]:
    yield f"# Validation under qemu, {datetime.now(UTC):%Y-%m-%d}\n\n"
    yield "Written by `make validate-vm`; nobody edited it. What it proves and what not: [index](README.md).\n\n"
    yield "| what | value |\n| --- | --- |\n"
    for name, value in _versions(site):
        yield f"| {name} | {value} |\n"
    for number, outcome in outcomes.items():
        yield from _chapter(number, outcome)


def _versions(site: Site) -> Iterator[tuple[str, str]]:
    yield "source", site.source
    yield "release", f"sha256 {site.release_digest}"
    yield "machine", "qemu without hardware help (tcg), 1 GiB, 2 processors, one ext4 disk"
    yield "boot loader", "the harness: it reads what `/vmlinuz` and `/initrd.img` lead to from the disk, at every start"
    yield "qemu", _output("qemu-system-x86_64", "--version").splitlines()[0]
    yield "Debian", f"{RECIPE.suite}, bootstrapped; initial file systems packed by gzip, to save time"
    yield (
        "kernels",
        f"{site.old.release} ({site.old.version}) to {site.new.release} ({site.new.version}), both Debian's",
    )
    yield "host", f"Linux {platform.release()}, Python {platform.python_version()}"


def _chapter(number: int, outcome: Outcome) -> Iterator[str]:
    verdict = "as expected" if outcome.is_good else "NOT AS EXPECTED"
    yield f"\n## {number}. {outcome.scenario.title}: {verdict}\n\n"
    yield f"Took {outcome.seconds:.0f} s. Commands: on the device `fleet-agent setup --url … --device-id {DEVICE} "
    yield "--token-file …`, for the fleet `fleetctl apply -f docs/examples/upgrade.yaml`.\n\n"
    yield "| what | found |\n| --- | --- |\n"
    for name, value in outcome.lines[:-1]:
        yield f"| {name} | {value.replace(chr(10), '; ').replace(chr(9), ' ')} |\n"
    for console in outcome.consoles:
        yield f"| console | {console} |\n"
    yield f"\nThe attempt's journal, by `fleet-updater journal`:\n\n```text\n{outcome.journal}\n```\n"
    name, value = outcome.lines[-1]
    yield f"\n`{name}`:\n\n```text\n{value}\n```\n"


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
