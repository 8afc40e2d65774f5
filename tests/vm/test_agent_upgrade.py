"""An agent is replaced by another one, and whatever does not prove itself is taken back (UPG-3, UPG-4, UPG-7)."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.releases.description import place
from agent.wire.messages import AttemptState
from harness.vm.releases import Archive, Change, Workshop, behaves, odd, with_members
from harness.waiting import wait_until
from tests.vm.containers import import_web
from tests.vm.upgrades import NEXT, UpgradeSite

COMPLETED, FAILED = AttemptState.COMPLETED, AttemptState.FAILED
NewSite = Callable[..., UpgradeSite]
STEPS = [
    *("accepted", "preflight", "download", "verify", "unpack", "self-test", "probe"),
    *("stop", "switch", "start", "readiness"),
]
STATUS = {"Id", "State", "StartedAt"}


@pytest.mark.clause("UPG-3", "UPG-4", "UPG-7")
def test_the_agent_is_replaced_and_its_containers_run_on(upgrades: UpgradeSite, candidate: Archive) -> None:
    device, before = upgrades.device, upgrades.before
    import_web(device.machine)
    device.podman("run", "--detach", "--name", "web", "localhost/web:1.0")
    container = _container(upgrades)
    upgrades.offer(candidate)
    end = device.upgrade()
    assert end.state is COMPLETED, end
    assert device.active() == place(device.target)
    assert device.version() == NEXT
    assert device.agent_runs()
    assert [*dict.fromkeys(entry.partition(" ")[0] for entry in device.entries())] == STEPS
    assert _container(upgrades) == container
    assert before in device.releases()
    wait_until(lambda: upgrades.control.reports[-1].facts.agent_version == NEXT, seconds=30, what="it says so")
    assert upgrades.depot.requests == [""]


@pytest.mark.clause("UPG-7")
@pytest.mark.case("U9")
def test_up_and_down_between_two_versions_twenty_times(
    upgrades: UpgradeSite, workshop: Workshop, candidate: Archive
) -> None:
    device = upgrades.device
    import_web(device.machine)
    device.podman("run", "--detach", "--name", "web", "localhost/web:1.0")
    container = _container(upgrades)
    archives = [candidate, workshop.pack("8.0.0")]
    for turn in range(20):
        archive = archives[turn % 2]
        upgrades.offer(archive)
        end = device.upgrade()
        assert end.state is COMPLETED, (turn, end)
        assert device.version() == archive.version
    assert _container(upgrades) == container
    assert len(upgrades.depot.requests) == 2, "what is on the disk and whole was fetched again"
    assert len(device.releases()) == 3


@dataclass(frozen=True)
class Bad:
    """A candidate that never becomes the agent; ``words`` are in the attempt's sentence, ``step`` is where it ended."""

    name: str
    step: str
    words: str
    change: Change = lambda release: None
    description: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _not_executable(release: Path) -> None:
    shutil.copy(release / "fleet-agent", release / "copy")
    (release / "fleet-agent").unlink()
    (release / "copy").rename(release / "fleet-agent")
    (release / "fleet-agent").chmod(0o644)


BAD = [
    Bad("another architecture than the device's", "preflight", "arm64", target={"architecture": "arm64"}),
    Bad(
        "built for another architecture",
        "unpack",
        "arm64",
        description={"architecture": "arm64"},
        target={"architecture": "amd64"},
    ),
    Bad("another version than said", "unpack", "9.0.0", target={"version": "9.0.1"}),
    Bad("another digest than said", "download", "sha256", target={"sha256": "0" * 64}),
    Bad("larger than said", "download", "1,000", target={"maxSize": 1000}),
    Bad("not executable", "self-test", "self-test", change=_not_executable),
    Bad("fails its self-test", "self-test", "no such module", behaves(self_test="echo no such module >&2; exit 1")),
    Bad(
        "says another version", "self-test", "9.0.0", behaves(self_test="echo fleet-agent 1.0.0 self-test passed; exit")
    ),
    Bad("cannot authenticate", "probe", "401", behaves(probe="echo the control plane answered 401 >&2; exit 1")),
    Bad("starts and dies", "restore", "restarted", behaves(run="exit 7")),
    Bad(
        "writes a newer state format",
        "unpack",
        "format 99",
        description={"formats": {"state": {"reads": [1, 99], "writes": 99}}},
    ),
]


@pytest.mark.clause("UPG-4")
@pytest.mark.case("U7")
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_candidate_leaves_the_agent_that_was(upgrades: UpgradeSite, workshop: Workshop, bad: Bad) -> None:
    device, before = upgrades.device, upgrades.before
    upgrades.offer(workshop.pack(NEXT, bad.change, **bad.description), **bad.target)
    pid = device.agent_pid()
    end = device.upgrade()
    assert (end.state, end.step) == (FAILED, bad.step), end
    assert bad.words in end.message
    _old_agent_runs(upgrades, before)
    assert (device.agent_pid() == pid) is (bad.step != "restore"), "the agent was stopped for nothing"


HOSTILE = {
    "leads out of it": (odd("harmony-fleet-9.0.0/../../../../etc/cron.d/evil", size=10), ".."),
    "has an absolute path": (odd("/etc/cron.d/evil", size=10), "/etc/cron.d/evil"),
    "brings a device": (odd("harmony-fleet-9.0.0/disk", tarfile.BLKTYPE), "disk"),
}


@pytest.mark.clause("UPG-3", "UPG-4")
@pytest.mark.parametrize("what", HOSTILE)
def test_an_archive_that_is_out_to_harm_is_not_unpacked(upgrades: UpgradeSite, candidate: Archive, what: str) -> None:
    member, words = HOSTILE[what]
    device, kept = upgrades.device, upgrades.device.releases()
    upgrades.offer(with_members(candidate, member))
    end = device.upgrade()
    assert (end.state, end.step) == (FAILED, "unpack"), end
    assert words in end.message
    assert device.releases() == kept
    assert not (device.machine.root / "etc/cron.d/evil").exists()
    _old_agent_runs(upgrades, upgrades.before)


@pytest.mark.clause("UPG-4")
def test_a_candidate_that_fills_the_disk_leaves_the_agent_that_was(upgrades: UpgradeSite, candidate: Archive) -> None:
    """It is larger unpacked than anybody would expect of its archive, so that measuring before does not help."""
    device = upgrades.device
    script = (
        "cp -a releases /root/kept && mount -t tmpfs -o size=185M,mode=755 full releases && cp -a /root/kept/* releases"
    )
    device.machine.run("sh", "-c", f"cd /opt/harmony-fleet && {script}")
    upgrades.offer(with_members(candidate, odd("harmony-fleet-9.0.0/zeros", size=110_000_000)))
    end = device.upgrade()
    assert (end.state, end.step) == (FAILED, "unpack"), end
    assert "No space left" in end.message
    assert device.machine.run("ls", "-A", "/opt/harmony-fleet/releases").stdout.split() == [upgrades.before]
    _old_agent_runs(upgrades, upgrades.before)


def _container(site: UpgradeSite) -> tuple[str, str]:
    """Which container runs, and since when."""
    (found,) = json.loads(site.device.podman("inspect", "web"))
    assert found["State"]["Running"]
    return found["Id"], found["State"]["StartedAt"]


def _old_agent_runs(site: UpgradeSite, before: str) -> None:
    """The device is reached: its old agent reports after the end of the attempt."""
    assert site.device.active() == before
    site.device.wait_for_agent()
    count = len(site.control.reports)
    wait_until(lambda: len(site.control.reports) > count, seconds=30, what="the old agent reports")
