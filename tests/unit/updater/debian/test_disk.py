"""Releases on a device's disk, below a folder of a test: the link, an archive's way, cut-offs and full disks."""

from __future__ import annotations

import itertools
import os
import pwd
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from agent.releases.description import place
from agent.releases.folders import damage, read
from agent.releases.job import FetchJob
from agent.updater.binary.host import RELEASES, STAGING, VERIFIED
from agent.updater.debian.disk import Disk
from agent.updater.machine import MachineError
from agent.wire.manifest import AgentUpgrade
from harness.waiting import wait_until
from tests.support.hosts import keep_releases
from tests.support.power import FragileDisk
from tests.unit.releases.kit import FILES, archive, contents, described, lay, member, members, target

ATTEMPT = "5f0c1f1e-0000-4000-8000-000000000001"
DATA = archive(members())
TARGET = target(DATA)
PLACE = place(TARGET)
SETUP = "run fleet-agent setup from an unpacked release, as root"


class Device:
    """A root folder as ``fleet-agent setup`` leaves it, with release 1.3.0 active."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.opt = root / "opt/harmony-fleet"
        self.state = root / "var/lib/harmony-fleet/updater"
        self.staging = root / "var/lib/harmony-fleet/staging"
        for folder in (self.opt / "releases", self.state, self.staging):
            folder.mkdir(parents=True)
        lay(self.opt / "releases/1.3.0", version="1.3.0")
        self.link = self.opt / "active"
        self.link.symlink_to("releases/1.3.0")
        self.disk = Disk(self.state, pwd.getpwuid(os.geteuid()).pw_name, root)

    def releases(self) -> list[str]:
        return sorted(os.listdir(self.opt / "releases"))

    def download(self, data: bytes = DATA, attempt: str = ATTEMPT, target: AgentUpgrade = TARGET) -> Path:
        """What the agent's user has fetched."""
        self.disk.prepare(attempt, target)
        path = self.staging / attempt / "archive"
        path.write_bytes(data)
        return path

    def install(self) -> None:
        self.download()
        assert self.disk.verify(ATTEMPT, TARGET, 60) == ""
        assert self.disk.unpack(ATTEMPT, TARGET, 60) == ""


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path / "root")


# The link -------------------------------------------------------------------------------------------------------------


def test_the_link_is_followed_to_the_name_of_a_release(device: Device) -> None:
    assert device.disk.active() == "1.3.0"
    assert device.disk.release("1.3.0").version == "1.3.0"
    device.link.unlink()
    device.link.symlink_to("/opt/harmony-fleet/releases/1.3.0")
    assert device.disk.active() == "1.3.0"


LAYOUTS: dict[str, tuple[Callable[[Device], object], str]] = {
    "missing": (lambda device: None, "is missing"),
    "plain file": (lambda device: device.link.touch(), "is no link"),
    "folder": (lambda device: device.link.mkdir(), "is no link"),
    "dangling": (lambda device: device.link.symlink_to("releases/1.2.3"), "where no release is"),
    "outside": (lambda device: device.link.symlink_to("/tmp"), "leads to /tmp, which is no place of a release"),  # noqa: S108
    "through parents": (
        lambda device: device.link.symlink_to("releases/../releases/1.3.0"),
        "leads to releases/../releases/1.3.0, which is no place of a release",
    ),
    "all releases": (lambda device: device.link.symlink_to("releases"), "is no place of a release"),
    "unfinished": (lambda device: device.link.symlink_to("releases/.x.unfinished"), "where no release is"),
}


@pytest.mark.case("U5")
@pytest.mark.clause("UPG-3")
@pytest.mark.parametrize(("spoil", "words"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_layout_without_an_active_release_says_so_and_what_to_do(
    device: Device, spoil: Callable[[Device], object], words: str
) -> None:
    (device.opt / "releases/.x.unfinished").mkdir()
    device.link.unlink()
    spoil(device)
    with pytest.raises(MachineError) as problem:
        device.disk.active()
    assert words in str(problem.value)
    assert SETUP in str(problem.value)


def test_the_link_is_switched_to_what_is_there_and_to_nothing_else(device: Device) -> None:
    lay(device.opt / "releases" / PLACE)
    device.disk.switch(PLACE)
    device.disk.switch(PLACE)
    assert device.link.readlink() == Path(f"releases/{PLACE}")
    with pytest.raises(MachineError, match=r"releases/9.9.9 does not exist"):
        device.disk.switch("9.9.9")
    assert device.disk.active() == PLACE
    device.link.unlink()
    device.disk.switch("1.3.0")
    assert device.disk.active() == "1.3.0"


@pytest.mark.case("U5")
def test_what_is_no_link_is_not_replaced(device: Device) -> None:
    device.link.unlink()
    device.link.mkdir()
    with pytest.raises(MachineError, match=f"is no link; {SETUP}"):
        device.disk.switch("1.3.0")


# An archive's way -----------------------------------------------------------------------------------------------------


@pytest.mark.clause("UPG-3", "UPG-7")
def test_a_download_becomes_a_release_that_may_be_repeated_at_any_step(device: Device) -> None:
    for _ in range(2):
        device.install()
    device.disk.switch(PLACE)
    assert device.disk.damage(PLACE) == ""
    found = contents(device.opt / "releases" / PLACE)
    assert {name: found[name] for name in FILES} == FILES
    device.disk.tidy(ATTEMPT, keep=["1.3.0"])
    device.disk.tidy(ATTEMPT, keep=["1.3.0"])
    assert contents(device.staging) == contents(device.state / "staging") == {}
    assert device.releases() == ["1.3.0", PLACE]


def test_what_is_to_be_fetched_is_for_the_agents_user_alone(device: Device) -> None:
    device.disk.prepare(ATTEMPT, TARGET)
    job = device.staging / f"{ATTEMPT}.json"
    assert msgspec.json.decode(job.read_bytes(), type=FetchJob) == FetchJob(
        TARGET, str(device.staging / ATTEMPT / "archive")
    )
    assert job.stat().st_mode & 0o777 == 0o640
    assert (device.staging / ATTEMPT).stat().st_mode & 0o777 == 0o700


def test_what_was_fetched_before_a_cut_off_stays(device: Device) -> None:
    path = device.download(b"half")
    device.disk.prepare(ATTEMPT, TARGET)
    assert path.read_bytes() == b"half"


@pytest.mark.clause("UPG-3")
def test_a_copy_that_was_verified_is_enough_after_a_cut_off(device: Device) -> None:
    device.download()
    assert device.disk.verify(ATTEMPT, TARGET, 60) == ""
    assert not (device.staging / ATTEMPT).exists()
    assert device.disk.verify(ATTEMPT, TARGET, 60) == ""


@pytest.mark.clause("UPG-3")
@pytest.mark.parametrize(
    ("data", "words"),
    [(DATA[:-1], "and the target's is"), (DATA + bytes(5000), f"bytes, and the target allows {TARGET.maxSize:,}")],
)
def test_a_download_that_is_not_the_target_is_named_and_gone(device: Device, data: bytes, words: str) -> None:
    path = device.download(data)
    assert words in device.disk.verify(ATTEMPT, TARGET, 60)
    assert not path.exists()
    assert contents(device.state) == {}


def _leads_elsewhere(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def _is_a_pipe(path: Path) -> None:
    os.mkfifo(path)


def _is_anothers(path: Path) -> None:
    path.with_name("mine").write_bytes(DATA)
    path.hardlink_to(path.with_name("mine"))


def _is_a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.clause("UPG-3")
@pytest.mark.parametrize("trick", [_leads_elsewhere, _is_a_pipe, _is_anothers, _is_a_folder])
def test_root_is_not_tricked_into_reading_something_else(device: Device, trick: Callable[[Path], None]) -> None:
    path = device.download()
    path.unlink()
    trick(path)
    with pytest.raises(MachineError):
        device.disk.verify(ATTEMPT, TARGET, 60)
    assert contents(device.state) == {}


def test_a_folder_of_the_download_that_was_replaced_by_a_link_is_not_followed(device: Device, tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(DATA)
    (device.staging / ATTEMPT).symlink_to(tmp_path)
    with pytest.raises(MachineError):
        device.disk.verify(ATTEMPT, TARGET, 60)
    assert (tmp_path / "archive").exists()


@pytest.mark.clause("UPG-7")
@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"evil"), lambda path: path.unlink()])
def test_a_damaged_release_is_replaced_unless_it_runs(device: Device, spoil: Callable[[Path], object]) -> None:
    device.install()
    program = device.opt / "releases" / PLACE / "fleet-agent"
    spoil(program)
    assert device.disk.damage(PLACE).startswith("fleet-agent ")
    device.install()
    assert device.disk.damage(PLACE) == ""

    device.disk.switch(PLACE)
    spoil(program)
    before = contents(device.opt)
    assert "runs and is never written to" in device.disk.unpack(ATTEMPT, TARGET, 60)
    assert contents(device.opt) == before


@pytest.mark.clause("UPG-7")
def test_a_release_that_is_whole_is_not_written_again(device: Device) -> None:
    device.install()
    before = (device.opt / "releases" / PLACE).stat().st_ino
    device.disk.switch(PLACE)
    device.install()
    assert (device.opt / "releases" / PLACE).stat().st_ino == before


def test_work_that_takes_too_long_is_given_up(device: Device) -> None:
    device.download()
    with pytest.raises(MachineError, match="took more than -1 seconds"):
        device.disk.verify(ATTEMPT, TARGET, -1)
    with pytest.raises(MachineError):
        device.disk.unpack(ATTEMPT, TARGET, -1)
    assert device.releases() == ["1.3.0"]


@pytest.mark.clause("UPG-7")
def test_it_keeps_releases_as_every_host_does(device: Device) -> None:
    versions = (f"2.{number}.0" for number in itertools.count())

    def fetched(attempt: str) -> AgentUpgrade:
        version = next(versions)
        data = archive(members(about=described(version=version)))
        wanted = target(data, version=version)
        device.download(data, attempt, wanted)
        wait_until(lambda: is_later(device), seconds=5, what="the disk's clock has gone on", every=0)
        return wanted

    keep_releases(device.disk, fetched)


def is_later(device: Device) -> bool:
    """Whether a new name has another time than all releases."""
    (device.root / "now").unlink(missing_ok=True)
    (device.root / "now").touch()
    now = (device.root / "now").stat().st_ctime_ns
    return all(path.stat().st_ctime_ns < now for path in (device.opt / "releases").iterdir())


# What stays -----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("UPG-7")
def test_the_active_release_and_those_that_are_named_stay(device: Device) -> None:
    releases = device.opt / "releases"
    for name in ("1.0.0", "1.1.0", "1.2.0"):
        lay(releases / name, version=name)
    (releases / "1.4.0-0123456789ab").mkdir()
    for leftover in (".1.4.0-0123456789ab.unfinished", ".1.4.0-0123456789ab.damaged", ".2.0.0.unfinished"):
        lay(releases / leftover)
    device.disk.tidy(ATTEMPT, keep=["1.0.0", "1.2.0"])
    assert device.releases() == [".2.0.0.unfinished", "1.0.0", "1.2.0", "1.3.0"]


def test_nothing_is_superfluous_while_no_release_is_active(device: Device) -> None:
    device.link.unlink()
    before = device.releases()
    device.disk.tidy(ATTEMPT, keep=[])
    assert device.releases() == before


def test_each_folder_is_measured_where_it_lies(device: Device) -> None:
    assert device.disk.can_replace()
    volumes = device.disk.volumes()
    assert volumes.keys() == {STAGING, VERIFIED, RELEASES}
    assert all(volume.free_bytes > 0 for volume in volumes.values())
    device.staging.rmdir()
    assert not device.disk.can_replace(), "an older setup made no such folder"


# Power and space ------------------------------------------------------------------------------------------------------


@pytest.mark.clause("UPG-3", "UPG-7")
@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_loss_of_power_leaves_an_active_release_that_is_whole(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """After each step of the way: nothing with the candidate's name is half of it, and nothing active is damaged."""
    active: list[str] = []
    before: dict[str, bytes] = {}
    if is_damaged:
        (lay(device.opt / "releases" / PLACE) / "fleet-agent").write_bytes(b"evil")
        before = contents(device.opt / "releases" / PLACE)

    def look(root: Path) -> None:
        opt = root / "opt/harmony-fleet"
        active.append(os.readlink(opt / "active"))
        assert damage(opt / active[-1], read(opt / active[-1])) == ""
        candidate = opt / "releases" / PLACE
        if candidate.exists() and contents(candidate) != before:
            assert damage(candidate, read(candidate)) == ""

    device.download()
    disk = FragileDisk(device.root, tmp_path / "ruin", look)
    disk.watch(monkeypatch)
    assert device.disk.verify(ATTEMPT, TARGET, 60) == ""
    assert device.disk.unpack(ATTEMPT, TARGET, 60) == ""
    device.disk.switch(PLACE)
    device.disk.tidy(ATTEMPT, keep=["1.3.0"])
    assert disk.losses > 40
    assert set(active[-2:]) == {f"releases/{PLACE}"}, "what was switched is on the disk"
    assert list(dict.fromkeys(active[::2])) == ["releases/1.3.0", f"releases/{PLACE}"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, whose size can be changed."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M", "small", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.root("a file system of its own that can be full")
@pytest.mark.clause("UPG-3")
def test_a_disk_that_is_full_at_any_write_leaves_what_was_there(small_disk: Path) -> None:
    files = {"fleet-agent": os.urandom(30_000), "_internal/library": os.urandom(50_000)}
    data = archive([*members(files), member("harmony-fleet-1.4.0/_internal/more/", kind=b"5")])
    wanted, device = target(data), Device(small_disk / "root")
    device.download(data, target=wanted)
    before = device.releases()
    outcomes = set()
    for free in range(0, 260_000, 4096):
        used = os.statvfs(small_disk)
        size = (used.f_blocks - used.f_bfree) * used.f_frsize + free
        subprocess.run(["mount", "-o", f"remount,size={size}", str(small_disk)], check=True)
        try:
            assert device.disk.verify(ATTEMPT, wanted, 60) == ""
            outcomes.add("verified")
            assert device.disk.unpack(ATTEMPT, wanted, 60) == ""
        except MachineError as error:
            assert "No space left on device" in str(error)  # noqa: PT017
            assert device.releases() == before
            outcomes.add("full")
        else:
            break
    assert outcomes == {"verified", "full"}
    assert device.disk.damage(place(wanted)) == ""
