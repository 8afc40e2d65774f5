"""Whatever is killed, cut off or missing: the new agent, the old agent, or ``rollback-failed`` with a repair that works
(UPG-4, UPG-6).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from agent.releases.description import place
from agent.setup.layout import AGENT_UNIT
from agent.wire.messages import AttemptState
from agent.wire.updater import Refusal
from harness.process import NotReady
from harness.vm.device import SECONDS
from harness.vm.releases import Archive, Workshop, behaves
from harness.vm.upgradable import RELEASES, UpgradableDevice
from harness.waiting import wait_until
from tests.vm.upgrades import NEXT, UpgradeSite

COMPLETED, FAILED, LOST = AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.ROLLBACK_FAILED
NewSite = Callable[..., UpgradeSite]
UPDATER, AGENT, POWER = "updater killed", "agent killed", "power cut"
#: Some states last a millisecond, so the blow may come too late; then it is another attempt.
TRIES = 12


@dataclass(frozen=True)
class Row:
    """``blow`` after the record (``step``, ``event``) of a good upgrade; ``state`` is the documented end."""

    blow: str
    step: str
    event: str
    state: AttemptState

    def __str__(self) -> str:
        return f"{self.blow}-{self.step}-{self.event}"


ROWS = [
    *(
        Row(blow, step, event, COMPLETED)
        for blow in (UPDATER, POWER)
        for step, event in (
            ("accepted", "ended"),
            ("preflight", "began"),
            ("download", "began"),
            ("verify", "began"),
            ("unpack", "began"),
            ("self-test", "began"),
            ("probe", "began"),
            ("probe", "ended"),
            ("readiness", "ended"),
        )
    ),
    *(
        Row(blow, step, event, FAILED)
        for blow in (UPDATER, POWER)
        for step, event in (
            ("stop", "began"),
            ("stop", "ended"),
            ("switch", "began"),
            ("switch", "ended"),
            ("start", "began"),
            ("readiness", "began"),
        )
    ),
    *(Row(AGENT, step, "began", COMPLETED) for step in ("download", "unpack", "self-test", "probe", "readiness")),
]


@pytest.mark.clause("UPG-6")
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_blow_in_any_state_leads_to_the_documented_end(new_site: NewSite, candidate: Archive, row: Row) -> None:
    site = _struck(new_site, candidate, row)
    device, before = site.device, site.before
    end = device.wait_for_end()
    assert end.state is row.state, (end, device.entries())
    assert device.active() == (place(device.target) if row.state is COMPLETED else before)
    _is_reached(site)


def _struck(new_site: NewSite, candidate: Archive, row: Row) -> UpgradeSite:
    """A device that went on before the blow is given up for another."""
    for _ in range(TRIES):
        site = new_site()
        site.offer(candidate)
        if site.device.freeze_at(row.step, row.event):
            _strike(site.device, row.blow)
            return site
        site.device.machine.power_off()
    pytest.fail(f"the updater never stood still at {row.step} {row.event}")


def _strike(device: UpgradableDevice, blow: str) -> None:
    match blow:
        case "updater killed":
            device.kill_updater()
        case "agent killed":
            with contextlib.suppress(NotReady):  # it is stopped just then
                device.kill_agent()
            os.kill(device.updater_pid(), signal.SIGCONT)
        case _:
            device.machine.cut_power()
            device.machine.start()


def _is_reached(site: UpgradeSite) -> None:
    """The agent that ``active`` leads to runs, and the control plane hears from it."""
    site.device.wait_for_agent()
    count = len(site.control.reports)
    wait_until(lambda: len(site.control.reports) > count, seconds=SECONDS, what="the agent reports", every=0.2)
    assert site.control.reports[-1].facts.agent_version == site.device.version()


#: A candidate that says so at once, and for whom it is not.
_OTHER = '{"request":"ready","attempt":"00000000-0000-4000-8000-000000000000","version":"9.0.0"}'
_SAYS_READY = f"""perl -MIO::Socket::UNIX -e '
    my $updater = IO::Socket::UNIX->new("/run/harmony-fleet/updater.sock") or die;
    print $updater q({_OTHER}) . "\\n"; $updater->flush; print <$updater>'
    exec sleep infinity"""


@pytest.mark.clause("UPG-4")
@pytest.mark.parametrize("run", ["exec sleep infinity", _SAYS_READY], ids=["hangs", "says it for another attempt"])
def test_a_candidate_that_never_becomes_ready_is_taken_back(
    upgrades: UpgradeSite, workshop: Workshop, run: str
) -> None:
    device = upgrades.device
    device.set_limits(readiness_seconds=8)
    upgrades.offer(workshop.pack(NEXT, behaves(run=run)))
    end = device.upgrade()
    assert (end.state, end.step) == (FAILED, "restore"), end
    assert "ready" in end.message
    if run is _SAYS_READY:
        assert '"reason":"unknown"' in device.machine.journal(AGENT_UNIT)
    assert device.active() == upgrades.before
    _is_reached(upgrades)


@pytest.mark.clause("UPG-4")
def test_a_control_plane_that_is_gone_fails_the_probe_and_changes_nothing(
    upgrades: UpgradeSite, candidate: Archive
) -> None:
    device, pid = upgrades.device, upgrades.device.agent_pid()
    device.set_limits(probe_seconds=5)
    upgrades.offer(candidate)
    upgrades.control.refuse_with = 503
    end = device.upgrade()
    assert (end.state, end.step) == (FAILED, "probe"), end
    assert "503" in end.message
    assert device.agent_pid() == pid


@pytest.mark.clause("UPG-4")
def test_a_control_plane_that_goes_away_before_readiness_brings_the_old_agent_back(
    upgrades: UpgradeSite, candidate: Archive
) -> None:
    device = upgrades.device
    device.set_limits(readiness_seconds=10)
    upgrades.offer(candidate)
    device.begin()
    device.wait_for("the candidate starts", lambda found: found.step in ("stop", "switch", "start", "readiness"))
    upgrades.control.refuse_with = 503
    end = device.wait_for_end()
    assert (end.state, end.step) == (FAILED, "restore"), end
    upgrades.control.refuse_with = 0
    assert device.active() == upgrades.before
    _is_reached(upgrades)


@pytest.mark.clause("UPG-4")
@pytest.mark.parametrize("control_plane_is_there", [True, False])
def test_when_neither_agent_starts_root_repairs_it(
    upgrades: UpgradeSite, workshop: Workshop, control_plane_is_there: bool
) -> None:
    """The agent before it is destroyed while the candidate is tried; ``repair`` finds what is whole."""
    device = upgrades.device
    previous = device.machine.inside(RELEASES) / upgrades.before
    upgrades.offer(workshop.pack(NEXT, behaves(run="exec sleep infinity")))
    device.set_limits(readiness_seconds=5, restore_seconds=20)
    device.begin()
    device.wait_for_step("readiness")
    (previous / "fleet-agent").rename(previous / "gone")
    end = device.wait_for_end()
    assert end.state is LOST, end
    assert "fleet-updater repair" in end.message
    lost, device.attempt = device.attempt, ""
    refused = device.begin()
    assert isinstance(refused, Refusal)
    assert refused.reason == "repair-required"

    upgrades.control.refuse_with = 0 if control_plane_is_there else 503
    done = device.machine.run("fleet-updater", "repair", check=False, seconds=120)
    assert done.returncode == 1, done.stdout
    assert "fleet-agent setup" in done.stdout
    (previous / "gone").rename(previous / "fleet-agent")
    done = device.machine.run("fleet-updater", "repair", check=False, seconds=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert device.active() == upgrades.before
    upgrades.control.refuse_with = 0
    device.attempt = lost
    assert device.standing().state is FAILED  # type: ignore[union-attr]
    _is_reached(upgrades)


@pytest.mark.clause("UPG-3")
def test_a_download_goes_on_where_it_was_cut_off(upgrades: UpgradeSite, candidate: Archive) -> None:
    upgrades.depot.stops_after = [1_000_000, 2_000_000]
    upgrades.offer(candidate)
    assert upgrades.device.upgrade().state is COMPLETED
    assert upgrades.depot.requests == ["", "bytes=1000000-", "bytes=3000000-"]


@pytest.mark.clause("UPG-3")
def test_an_address_that_has_nothing_fails_with_its_status(upgrades: UpgradeSite, candidate: Archive) -> None:
    upgrades.offer(candidate)
    upgrades.depot.files.clear()
    end = upgrades.device.upgrade()
    assert (end.state, end.step) == (FAILED, "download")
    assert "404" in end.message


@pytest.mark.clause("UPG-7")
def test_a_version_on_the_disk_that_was_damaged_is_fetched_again(
    upgrades: UpgradeSite, workshop: Workshop, candidate: Archive
) -> None:
    device = upgrades.device
    upgrades.offer(candidate)
    assert device.upgrade().state is COMPLETED
    there = device.active()
    upgrades.offer(workshop.pack("8.0.0"))
    assert device.upgrade().state is COMPLETED
    (device.machine.inside(RELEASES) / there / "release.json").unlink()
    (device.machine.inside(RELEASES) / there / "fleet-agent").write_bytes(b"")
    upgrades.offer(candidate)
    assert device.upgrade().state is COMPLETED
    assert device.version() == NEXT
    assert len(upgrades.depot.requests) == 3


LAYOUTS = {
    "missing": "rm active",
    "a plain file": "rm active && touch active",
    "a folder": "rm active && mkdir active",
    "dangling": "ln --symbolic --force --no-dereference releases/1.2.3 active",
    "outside": "ln --symbolic --force --no-dereference /tmp active",
    "damaged": "for f in releases/*/fleet-agent; do cp $f $f.new && echo >> $f.new && mv $f.new $f; done",
}


@pytest.mark.clause("UPG-4")
@pytest.mark.case("U5")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_that_could_not_be_restored_is_refused_before_anything_stops(
    upgrades: UpgradeSite, candidate: Archive, layout: str
) -> None:
    device, pid = upgrades.device, upgrades.device.agent_pid()
    device.machine.run("sh", "-c", f"cd /opt/harmony-fleet && {LAYOUTS[layout]}")
    upgrades.offer(candidate)
    end = device.upgrade()
    assert (end.state, end.step) == (FAILED, "preflight"), end
    assert "fleet-agent setup" in end.message
    assert device.agent_pid() == pid
    assert upgrades.depot.requests == []


@pytest.mark.clause("UPG-4")
@pytest.mark.parametrize("mount", ["/var/lib/harmony-fleet/staging", "/opt/harmony-fleet/releases"])
def test_a_disk_that_is_too_small_is_said_with_both_numbers(new_site: NewSite, candidate: Archive, mount: str) -> None:
    site = new_site()
    site.device.machine.run("mount", "--types=tmpfs", "--options=size=4M", "small", mount)
    site.offer(candidate)
    end = site.device.upgrade()
    assert (end.state, end.step) == (FAILED, "preflight"), end
    assert "free" in end.message or "fleet-agent setup" in end.message
    site.device.machine.run("umount", mount)
    assert site.device.upgrade().state is COMPLETED


@pytest.mark.clause("UPG-3")
def test_an_ordinary_reboot_during_readiness_is_a_cut_off_like_any_other(
    upgrades: UpgradeSite, candidate: Archive
) -> None:
    device = upgrades.device
    device.set_limits(readiness_seconds=60)
    upgrades.control.refuse_with = 0
    upgrades.offer(candidate)
    device.begin()
    device.wait_for("the candidate is tried", lambda found: found.step in ("switch", "start", "readiness"))
    device.machine.run("systemctl", "--no-block", "reboot")
    device.machine.wait_until_up(boots=2)
    end = device.wait_for_end()
    assert end.state in (FAILED, COMPLETED), end
    assert (device.active() == upgrades.before) is (end.state is FAILED)
    _is_reached(upgrades)
