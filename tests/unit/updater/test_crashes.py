"""The updater, or its whole machine, is killed at every moment of an upgrade: before and after each call of the machine
and around each record. Every end is the documented one."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.updater.simulated import Faults
from agent.wire.messages import AttemptState
from tests.support.crashes import Fuse, Killed
from tests.support.updaters import UpdatingDevice

#: The step in which a kill finds the attempt (the last whole record's) and how it ends when the updater comes back.
#: ``accepted`` has not begun, so it waits for time or goes on.
AFTER_KILL = {
    "accepted": AttemptState.COMPLETED,
    "preflight": AttemptState.FAILED,
    "update": AttemptState.FAILED,
    "simulate": AttemptState.FAILED,
    "upgrade": AttemptState.COMPLETED,
    "audit": AttemptState.COMPLETED,
    "reboot": AttemptState.COMPLETED,
    "verify": AttemptState.COMPLETED,
}
#: With the whole machine, apt is cut off in the middle too, which leaves dpkg unclean when it ran.
AFTER_POWER_LOSS = AFTER_KILL


def crash(folder: Path, left: int, come_back: Callable[[UpdatingDevice], None]) -> tuple[UpdatingDevice, Fuse, str]:
    """An upgrade that is cut off at the given moment, and went on to its end; and in which step it was found."""
    fuse = Fuse(left)
    device = UpdatingDevice(folder, fuse=fuse)
    device.begin()
    found = ""
    try:
        device.run()
    except Killed:
        device.fuse = None
        come_back(device)
        found = device.attempt().place.step
        device.run()
    return device, fuse, found


def moments(tmp_path: Path) -> list[str]:
    """All moments of an upgrade that nothing cuts off."""
    return crash(tmp_path / "whole", -1, UpdatingDevice.start)[1].moments


def test_there_are_moments_in_every_step(tmp_path: Path) -> None:
    seen = moments(tmp_path)
    assert len(seen) > 80
    assert {"before reboot", "after start", "half of upgrade began", "after verify ended"} <= set(seen)


@pytest.mark.clause("SYS-5")
def test_an_updater_that_is_killed_at_any_moment_comes_to_the_documented_end(tmp_path: Path) -> None:
    for left, moment in enumerate(moments(tmp_path), start=1):
        device, _, found = crash(tmp_path / str(left), left, UpdatingDevice.start)
        assert device.state is AFTER_KILL[found], f"killed {moment} (in {found}): {device.told()} {device.message}"
        assert_documented(device, moment)


@pytest.mark.clause("SYS-5")
@pytest.mark.case("U1")
def test_a_machine_that_loses_power_at_any_moment_comes_to_the_documented_end(tmp_path: Path) -> None:
    for left, moment in enumerate(moments(tmp_path), start=1):
        device, _, found = crash(tmp_path / str(left), left, UpdatingDevice.cut_power)
        expected = {AFTER_POWER_LOSS[found]}
        if found == "upgrade":  # dpkg decides: it may not have begun, or be through
            expected.add(AttemptState.REPAIR_REQUIRED)
        assert device.state in expected, f"power lost {moment} (in {found}): {device.told()} {device.message}"
        assert_documented(device, moment)


@pytest.mark.clause("SYS-5")
@pytest.mark.case("U1")
@given(
    crashes=st.lists(st.tuples(st.integers(1, 60), st.booleans()), max_size=6),
    breaks=st.booleans(),
    code=st.sampled_from([0, 0, 100]),
    keeps_kernel=st.booleans(),
    ignored_reboots=st.integers(0, 4),
)
@settings(max_examples=100, deadline=None)
def test_however_often_and_whenever_it_crashes_it_ends_and_never_loops(
    crashes: list[tuple[int, bool]], breaks: bool, code: int, keeps_kernel: bool, ignored_reboots: int
) -> None:
    faults = Faults(
        breaks=breaks, exit_codes={"upgrade": code}, keeps_kernel=keeps_kernel, ignored_reboots=ignored_reboots
    )
    with tempfile.TemporaryDirectory() as folder:
        device = UpdatingDevice(Path(folder), faults=faults)
        device.begin()
        device.stride = 5.0
        for moments_until, is_power_loss in crashes:
            device.fuse = Fuse(moments_until)
            device.start()
            with contextlib.suppress(Killed):
                device.run()
            device.fuse = None
            if is_power_loss:
                device.cut_power()
        device.start()
        device.run()
        power_losses = sum(is_power_loss for _, is_power_loss in crashes)
        assert device.state in (AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.REPAIR_REQUIRED)
        assert device.machine.boots <= 1 + power_losses + 3
        assert device.machine.upgrades_started <= 3
        if device.state is AttemptState.COMPLETED:
            assert not keeps_kernel or device.machine.running_kernel() == "6.1.0-2-amd64"
            assert device.machine.package_problems() == ""


@pytest.mark.clause("SYS-5")
def test_a_cut_off_transaction_that_left_dpkg_unclean_needs_repair_and_never_reboots(device: UpdatingDevice) -> None:
    device.begin()
    device.run_to("upgrade", "began")
    device.clock.forward(1.0)
    device.cut_power()
    device.run()
    boots = device.machine.boots
    assert device.state is AttemptState.REPAIR_REQUIRED
    assert device.message == (
        "The package transaction was interrupted; run as root: fleet-updater repair. Found: dpkg was interrupted:"
        " libexample1 is half configured"
    )
    device.run(lambda: device.machine.boottime() > 3_600)
    assert device.machine.boots == boots


@pytest.mark.clause("SYS-5")
@pytest.mark.case("U1")
def test_a_machine_that_loses_power_in_every_upgrade_is_given_up_after_three_starts(tmp_path: Path) -> None:
    device = UpdatingDevice(tmp_path, faults=Faults(breaks=False, hang=["upgrade"]))
    device.begin()
    device.run_to("upgrade", "began")
    for _ in range(3):
        device.clock.forward(1.0)
        device.cut_power()
        device.turn()
    device.run()
    assert device.message == "apt was cut off 3 times; no package is left half installed"
    assert device.machine.upgrades_started == 3


@pytest.mark.clause("SYS-5")
def test_apt_that_still_runs_is_waited_for_and_started_only_once(device: UpdatingDevice) -> None:
    device.machine.pace.upgrade = 900.0
    device.begin()
    device.run_to("upgrade", "began")
    device.start()
    device.run(lambda: "upgrade noted" in device.told())
    assert device.message == "The updater was stopped; apt still runs and is waited for"
    device.run()
    assert (device.state, device.machine.upgrades_started) == (AttemptState.COMPLETED, 1)


@pytest.mark.clause("SYS-5")
@pytest.mark.parametrize("step", ["upgrade", "audit"])
def test_an_ordinary_reboot_is_not_mistaken_for_its_own(device: UpdatingDevice, step: str) -> None:
    device.begin()
    device.run_to(step, "ended")
    device.cut_power()
    device.run()
    assert device.state is AttemptState.COMPLETED
    assert device.machine.boots == 3
    assert "reboot began" in device.told()


@pytest.mark.clause("SYS-5")
@pytest.mark.parametrize(
    ("come_back", "what"),
    [(UpdatingDevice.start, "The updater was stopped"), (UpdatingDevice.cut_power, "The device was started anew")],
)
def test_before_the_transaction_it_fails_and_says_that_nothing_was_changed(
    device: UpdatingDevice, come_back: Callable[[UpdatingDevice], None], what: str
) -> None:
    device.begin()
    device.run_to("update", "began")
    come_back(device)
    device.run()
    assert device.message == f"{what} in the step update; no package was changed"
    assert device.machine.upgrades_started == 0


@pytest.mark.clause("SYS-4")
@pytest.mark.case("U1")
def test_a_device_that_never_stays_up_long_enough_to_report_is_given_up(device: UpdatingDevice) -> None:
    device.agent = False
    device.begin()
    device.run_to("verify", "began")
    for _ in range(30):
        device.turn()
        device.turn()
        device.cut_power()
    assert device.state is AttemptState.FAILED
    assert len(device.attempt().records) < 40


def assert_documented(device: UpdatingDevice, moment: str) -> None:
    """What holds for every end: no gap in the numbers, one reboot beside the crash, apt started at most twice."""
    records = device.attempt().records
    assert [record.number for record in records] == list(range(1, len(records) + 1)), moment
    assert device.machine.boots <= 3, moment
    assert device.machine.upgrades_started <= 2, moment
    if device.state is AttemptState.COMPLETED:
        assert device.machine.running_kernel() == "6.1.0-2-amd64"
