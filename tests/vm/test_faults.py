"""What a real Debian comes to when its updater, or the whole machine, is killed in any state (SYS-5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from agent.wire.messages import AttemptState
from agent.wire.updater import Refusal, Standing
from harness.vm import packages
from harness.vm.device import SECONDS, UPDATER_UNIT, Device
from harness.waiting import wait_until

COMPLETED, FAILED, REPAIR = AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.REPAIR_REQUIRED
NewDevice = Callable[..., Device]
TRIES = 20


@dataclass(frozen=True)
class Row:
    """``blow`` after the record (``step``, ``event``); the end is ``state``, with ``words`` in its sentence."""

    blow: str
    step: str
    event: str
    state: AttemptState
    words: str = ""

    def __str__(self) -> str:
        return f"{self.blow}-{self.step}-{self.event}"


KILLED, POWER = "updater killed", "power cut"
STOPPED, STARTED_ANEW = "The updater was stopped", "The device was started anew"
ROWS = [
    Row(KILLED, "accepted", "ended", COMPLETED),
    Row(KILLED, "preflight", "began", FAILED, f"{STOPPED} in the step preflight; no package was changed"),
    Row(KILLED, "preflight", "ended", FAILED, f"{STOPPED} after the step preflight; no package was changed"),
    Row(KILLED, "update", "began", FAILED, f"{STOPPED} in the step update; no package was changed"),
    Row(KILLED, "simulate", "began", FAILED, f"{STOPPED} in the step simulate; no package was changed"),
    Row(KILLED, "upgrade", "ended", COMPLETED),
    Row(KILLED, "audit", "began", COMPLETED),
    Row(KILLED, "audit", "ended", COMPLETED),
    Row(KILLED, "reboot", "began", COMPLETED),
    Row(KILLED, "verify", "began", COMPLETED),
    Row(POWER, "accepted", "ended", COMPLETED),
    Row(POWER, "preflight", "began", FAILED, f"{STARTED_ANEW} in the step preflight; no package was changed"),
    Row(POWER, "update", "began", FAILED, f"{STARTED_ANEW} in the step update; no package was changed"),
    Row(POWER, "simulate", "began", FAILED, f"{STARTED_ANEW} in the step simulate; no package was changed"),
    Row(POWER, "upgrade", "ended", COMPLETED),
    Row(POWER, "audit", "began", COMPLETED),
    Row(POWER, "reboot", "began", COMPLETED),
    Row(POWER, "verify", "began", COMPLETED),
]


@pytest.mark.clause("SYS-5")
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_blow_in_any_state_leads_to_the_documented_end(new_device: NewDevice, row: Row) -> None:
    device = _struck(new_device, row)
    end = device.wait_for_end()
    assert (end.state, row.words in end.message) == (row.state, True), end
    _has_no_gap(device, end)


def _struck(new_device: NewDevice, row: Row) -> Device:
    """Some states last a millisecond: a device that went on before the blow is given up for another."""
    for _ in range(TRIES):
        device = new_device(packages.good("2"))
        if _stands_still(device, row):
            _strike(device, row.blow)
            return device
    pytest.fail(f"the updater never stood still at {row.step} {row.event}")


def _stands_still(device: Device, row: Row) -> bool:
    if row.step != "verify":
        return device.freeze_at(row.step, row.event)
    device.begin()  # it waits there by itself, for the agent
    return bool(device.wait_for_step("verify"))


def _strike(device: Device, blow: str) -> None:
    if blow == KILLED:
        device.kill_updater()
    else:
        device.machine.cut_power()
        device.machine.start()


def _has_no_gap(device: Device, end: Standing) -> None:
    assert len(device.entries()) == end.last_number


@pytest.mark.clause("SYS-5")
def test_apt_goes_on_while_the_updater_is_dead_and_is_found_again(new_device: NewDevice) -> None:
    device = new_device(packages.hanging("2"))
    device.begin()
    device.wait_for_step("upgrade")
    _wait_for_hanging(device)
    device.kill_updater()
    wait_until(device.answers, seconds=SECONDS, what="the updater is back")
    device.wait_for("apt is found", lambda found: "full-upgrade runs" in found.message)
    assert "apt still runs and is waited for" in device.entries()[-1]
    device.machine.inside(packages.GO).touch()
    assert device.wait_for_end().state is COMPLETED


@pytest.mark.clause("SYS-5")
@pytest.mark.clause("SYS-6")
@pytest.mark.case("U1")
def test_power_lost_inside_the_transaction_needs_repair_and_never_loops(new_device: NewDevice) -> None:
    device = new_device(packages.hanging("2"))
    device.begin()
    _wait_for_hanging(device)
    device.machine.cut_power()
    device.machine.start()
    end = device.wait_for_end()
    assert end.state is REPAIR
    assert "harmony-hanging" in end.message
    assert device.machine.boots == 2

    interrupted, device.attempt = device.attempt, ""
    refused = device.begin()
    assert isinstance(refused, Refusal)
    assert refused.reason == "repair-required"
    assert "fleet-updater repair" in refused.message

    device.machine.inside(packages.GO).touch()
    said = device.machine.run("fleet-updater", "repair").stdout
    assert "dpkg --configure -a" in said
    assert not device.machine.run("dpkg", "--audit").stdout
    device.attempt = interrupted
    assert "repair" in " ".join(device.entries())
    device.attempt = ""
    device.begin()
    assert device.wait_for_end().state is COMPLETED


@pytest.mark.clause("SYS-5")
def test_an_ordinary_reboot_waits_for_dpkg_and_is_not_taken_for_its_own(new_device: NewDevice) -> None:
    device = new_device(packages.hanging("2"))
    device.begin()
    _wait_for_hanging(device)
    device.machine.run("systemctl", "--no-block", "reboot")
    device.machine.inside(packages.GO).touch()
    device.machine.wait_until_up(boots=2)
    assert device.wait_for_end().state is COMPLETED
    assert not device.machine.run("dpkg", "--audit").stdout


@pytest.mark.clause("SYS-2")
def test_a_failing_maintainer_script_needs_repair(new_device: NewDevice) -> None:
    device = new_device(packages.failing("2"))
    device.begin()
    end = device.wait_for_end()
    assert end.state is REPAIR
    assert "harmony-failing" in end.message
    device.machine.inside("/run/harmony-test-mended").touch()
    device.machine.run("fleet-updater", "repair")
    assert not device.machine.run("dpkg", "--audit").stdout


@pytest.mark.clause("SYS-2")
@pytest.mark.case("U2")
def test_an_upgrade_that_does_not_fit_is_refused_with_both_numbers(new_device: NewDevice) -> None:
    device = new_device(packages.large("2"))
    device.begin()
    end = device.wait_for_end()
    assert end.state is FAILED
    assert re.search(r"needs [0-9,]{18} bytes and has [0-9,]+ free", end.message)
    assert device.machine.run("dpkg-query", "--show", "harmony-large").stdout.split() == ["harmony-large", "1"]


@pytest.mark.clause("SYS-2")
def test_an_upgrade_that_would_remove_podman_is_refused(new_device: NewDevice) -> None:
    device = new_device(packages.hostile_to_podman("2"))
    device.begin()
    end = device.wait_for_end()
    assert end.state is FAILED
    assert "It would remove podman, which the fleet needs" in end.message


@pytest.mark.clause("SYS-2")
@pytest.mark.case("U2")
def test_a_disk_that_fills_up_in_the_middle_leaves_the_packages_whole(new_device: NewDevice) -> None:
    device = new_device(packages.filling("2"), mounts={"/opt/full": "1M"})
    device.begin()
    end = device.wait_for_end()
    assert end.state in (FAILED, REPAIR)
    assert "No space left on device" in end.message or end.state is REPAIR
    device.machine.run("umount", "/opt/full")
    if end.state is REPAIR:
        device.machine.run("fleet-updater", "repair")
    assert not device.machine.run("dpkg", "--audit").stdout


@pytest.mark.clause("SYS-1")
def test_a_lock_that_another_apt_holds_is_waited_for(new_device: NewDevice) -> None:
    device = new_device(packages.hanging("2"))
    device.machine.run("apt-get", "update")
    other = ["systemd-run", "--quiet", "--unit=other-apt", "--setenv=DEBIAN_FRONTEND=noninteractive", "--"]
    device.machine.run(*other, "apt-get", "--yes", "full-upgrade")
    _wait_for_hanging(device)
    device.begin()
    waiting = device.wait_for("it waits for the lock", lambda found: "holds" in found.message)
    assert "apt-get" in waiting.message
    device.machine.inside(packages.GO).touch()
    assert device.wait_for_end().state is COMPLETED


@pytest.mark.clause("SYS-1")
def test_a_repository_that_cannot_be_reached_fails_before_anything_changes(new_device: NewDevice) -> None:
    device = new_device(packages.good("2"))
    sources = device.machine.root / "etc/apt/sources.list"
    sources.write_text(f"deb [trusted=yes] http://{device.machine.cable.host}:9 ./\n")
    device.begin()
    end = device.wait_for_end()
    assert end.state is FAILED
    assert "apt-get update ended with exit code 100" in end.message


@pytest.mark.clause("SYS-4")
def test_without_contact_after_the_boot_it_is_not_verified(new_device: NewDevice) -> None:
    device = new_device(packages.good("2"))
    device.begin()
    device.machine.wait_until_up(boots=2)
    waiting = device.wait_for("it waits for the agent", lambda found: "report" in found.message)
    assert waiting.state is AttemptState.RUNNING
    device.note_contact()
    assert device.wait_for_end().state is COMPLETED


@pytest.mark.clause("TSK-4")
def test_after_its_seconds_nothing_begins(new_device: NewDevice) -> None:
    device = new_device(packages.good("2"))
    refused = device.begin(remaining_seconds=0)
    assert isinstance(refused, Refusal)
    assert refused.reason == "expired"


@pytest.mark.clause("SYS-1")
def test_the_operator_reads_every_step_in_the_journal_of_the_unit(new_device: NewDevice) -> None:
    device = new_device(packages.good("2"))
    device.begin()
    device.wait_for_end()
    told = device.machine.journal(UPDATER_UNIT)
    steps = ["preflight", "update", "simulate", "upgrade", "audit", "reboot", "verify"]
    places = [told.find(words) for words in (": accepted:", *(f": {step} began:" for step in steps), "completed")]
    assert -1 not in places
    assert places == sorted(places)


def _wait_for_hanging(device: Device) -> None:
    running = ["pgrep", "--full", "harmony-hanging.postinst"]
    wait_until(
        lambda: device.machine.run(*running, check=False).returncode == 0, seconds=60, what="the maintainer script runs"
    )
