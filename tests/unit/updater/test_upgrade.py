"""A system upgrade from accepted to its end, on a simulated machine: what an operator reads and what stops it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent.updater.machine import BOOT, VAR
from agent.updater.simulated import Faults
from agent.wire.messages import AttemptState
from agent.wire.updater import GetStatus, UpdaterStatus
from tests.support.updaters import UID, UpdatingDevice

HOUR, DAY = 3_600.0, 86_400.0


@pytest.mark.clause("SYS-1")
@pytest.mark.clause("SYS-3")
def test_an_operator_reads_the_whole_way_from_accepted_to_verified(
    device: UpdatingDevice, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent.updater")
    device.begin()
    device.run()
    boot = device.machine.boot_id()
    assert [record.getMessage().removeprefix(f"attempt {UID}: ") for record in caplog.records] == [
        "accepted: systemUpgradeV1 may begin within 600 seconds",
        "preflight began: Looks at locks, the package database, the clock and free space",
        "preflight ended: The device is ready",
        "update began: Fetches the package lists (apt-get update)",
        "update ended: The package lists are fetched",
        "simulate began: Simulates the full upgrade and measures what it needs",
        "simulate ended: Packages: 3 to upgrade, 0 new, 0 to remove; needs no space",
        "upgrade began: Upgrades the packages in a unit of its own (apt-get full-upgrade); from here on nothing"
        " interrupts it",
        "upgrade ended: The packages are upgraded",
        "audit began: Looks for packages that are not fully installed (dpkg --audit)",
        "audit ended: Every package is fully installed",
        "reboot began: Asks for a reboot; kernel 6.1.0-2-amd64 should run then",
        f"reboot ended: The device was started anew (boot {boot})",
        "verify began: Compares kernels, audits the packages, waits for the agent's report",
        "verify completed: Verified: kernel 6.1.0-2-amd64 runs, every package is fully installed, the agent reported",
    ]


@pytest.mark.clause("SYS-3")
def test_entries_are_numbered_from_one_without_a_gap(device: UpdatingDevice) -> None:
    device.begin()
    device.run()
    assert [record.number for record in device.attempt().records] == list(range(1, 16))


@pytest.mark.clause("SYS-1")
def test_a_lock_that_somebody_holds_is_waited_for(device: UpdatingDevice) -> None:
    device.faults.lock_seconds = 0.9 * HOUR
    device.stride = 30.0
    device.begin()
    device.run(lambda: len(device.attempt().records) == 3)
    waits = "Waits for the lock of the package database, which unattended-upgr (process 812) holds"
    assert device.message == waits
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.case("U8")
def test_a_lock_that_is_never_given_up_ends_the_attempt_after_an_hour(device: UpdatingDevice) -> None:
    device.faults.lock_seconds = DAY
    device.stride = 30.0
    device.begin()
    device.run()
    assert device.state is AttemptState.FAILED
    assert "unattended-upgr (process 812) held the lock of the package database for an hour" in device.message
    assert device.machine.boottime() < HOUR + 60


@pytest.mark.clause("SYS-2")
@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        (
            Faults(unclean="libexample1 is half configured"),
            "The package database is not clean, run dpkg --configure -a: libexample1 is half configured",
        ),
        (
            Faults(clock_offset=-1_796_000_000.0),
            "The clock says 1970-01-01 00:00:00 UTC, but this release was built on 2026-09-21 14:13:20 UTC; set the"
            " clock",
        ),
        (
            Faults(free={VAR: 1_000}),
            "/ and /var needs 192,000,000 bytes and has 1,000 free",
        ),
        (
            Faults(needs={BOOT: 210_000_000}, free={BOOT: 12_345}),
            "No package was changed: /boot needs 210,000,000 bytes and has 12,345 free",
        ),
        (
            Faults(needs={"/": 5_000_000_000, VAR: 4_000_000_000}),
            "No package was changed: / and /var needs 9,000,000,000 bytes and has 8,000,000,000 free",
        ),
        (
            Faults(removes=["libold1", "podman", "openssh-server"]),
            "No package was changed: It would remove podman, openssh-server, which the fleet needs",
        ),
    ],
    ids=["dpkg", "clock", "var", "boot", "shared", "podman"],
)
def test_what_is_not_as_it_must_be_fails_before_any_package_is_changed(
    device: UpdatingDevice, faults: Faults, sentence: str
) -> None:
    device.machine.faults = faults
    device.begin()
    device.run()
    assert (device.state, device.message) == (AttemptState.FAILED, sentence)
    assert device.machine.upgrades_started == 0
    assert device.machine.boots == 1


@pytest.mark.clause("SYS-2")
@pytest.mark.case("U2")
@pytest.mark.case("U3")
def test_everything_that_is_missing_is_said_at_once(device: UpdatingDevice) -> None:
    device.machine.faults = Faults(unclean="libexample1", clock_offset=-1_796_000_000.0, free={VAR: 5, BOOT: 5})
    device.begin()
    device.run()
    assert [part for part in ("libexample1", "1970-01-01", "has 5 free") if part not in device.message] == []


def test_a_package_list_that_cannot_be_fetched_fails_with_apts_words(device: UpdatingDevice) -> None:
    device.faults.exit_codes = {"update": 100}
    device.begin()
    device.run()
    assert device.message == "apt-get update ended with exit code 100: E: update failed"
    assert device.told()[-1] == "update failed"


@pytest.mark.case("U8")
def test_fetching_package_lists_has_a_limit(device: UpdatingDevice) -> None:
    device.faults.hang = ["update"]
    device.begin()
    device.run()
    assert device.message == "apt-get update took more than 30 minutes and was ended; no package was changed"


@pytest.mark.clause("SYS-5")
@pytest.mark.case("U8")
def test_apt_has_no_limit_and_its_silence_is_reported_later_and_later(device: UpdatingDevice) -> None:
    device.faults.hang = ["upgrade"]
    device.stride = 300.0
    device.begin()
    device.run(lambda: device.machine.boottime() > 5 * DAY)
    notes = [record.message for record in device.attempt().records if record.event == "noted"]
    assert notes[:3] == [f"apt-get full-upgrade runs; no output for {minutes} minutes" for minutes in (10, 20, 40)]
    assert len(notes) == 10
    assert device.standing() == "apt-get full-upgrade runs; no output for 7170 minutes"
    device.faults.hang = []
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.parametrize(("breaks", "state"), [(False, AttemptState.FAILED), (True, AttemptState.REPAIR_REQUIRED)])
def test_a_failed_upgrade_is_a_clean_failure_only_if_no_package_is_half_installed(
    device: UpdatingDevice, breaks: bool, state: AttemptState
) -> None:
    device.faults.exit_codes = {"upgrade": 100}
    device.faults.breaks = breaks
    device.begin()
    device.run()
    assert device.state is state
    assert "apt-get full-upgrade ended with exit code 100" in device.message
    assert "E: upgrade failed" in device.message
    assert device.machine.boots == 1


@pytest.mark.clause("SYS-4")
def test_a_reboot_that_keeps_the_old_kernel_fails_with_both_names(device: UpdatingDevice) -> None:
    device.faults.keeps_kernel = True
    device.begin()
    device.run()
    assert device.state is AttemptState.FAILED
    assert device.message == "Kernel 6.1.0-1-amd64 runs, but 6.1.0-2-amd64 was expected after the reboot"


@pytest.mark.clause("SYS-4")
@pytest.mark.case("U4")
def test_where_no_kernel_package_is_installed_any_kernel_will_do(tmp_path: Path) -> None:
    device = UpdatingDevice(tmp_path, kernel="")
    device.begin()
    device.run_to("reboot", "began")
    assert device.message == "Asks for a reboot; no kernel package is installed, so any kernel may run"
    device.run()
    assert device.state is AttemptState.COMPLETED
    assert "kernel 6.6.0-board runs" in device.message


@pytest.mark.clause("SYS-4")
def test_packages_that_are_broken_after_the_reboot_need_repair(device: UpdatingDevice) -> None:
    device.begin()
    device.run_to("reboot", "ended")
    device.faults.unclean = "initramfs-tools is half configured"
    device.run()
    assert device.state is AttemptState.REPAIR_REQUIRED


@pytest.mark.clause("SYS-4")
def test_without_a_report_of_the_agent_in_this_boot_nothing_is_verified(device: UpdatingDevice) -> None:
    device.agent = False
    device.stride = 30.0
    device.begin()
    device.contact()  # of the boot before
    device.run(lambda: device.machine.boottime() > 0.9 * DAY)
    waits = "Waits for the control plane to acknowledge a report of the agent in this boot"
    assert (device.state, device.standing()) == (AttemptState.RUNNING, waits)
    device.contact()
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.clause("SYS-4")
@pytest.mark.case("U8")
def test_waiting_for_the_agents_report_ends_after_a_day(device: UpdatingDevice) -> None:
    device.agent = False
    device.stride = 30.0
    device.begin()
    device.run()
    assert device.state is AttemptState.FAILED
    assert device.message.startswith("Waited in vain for the control plane to acknowledge a report")
    assert DAY <= device.machine.boottime() < DAY + 120


@pytest.mark.case("U8")
@pytest.mark.case("U1")
def test_a_device_that_does_not_reboot_is_asked_three_times_and_then_left_alone(device: UpdatingDevice) -> None:
    device.faults.ignored_reboots = 99
    device.stride = 10.0
    device.begin()
    device.run()
    assert device.faults.ignored_reboots == 96
    assert device.message == "The device did not reboot, though asked 3 times; its packages are upgraded"
    assert device.machine.boottime() < HOUR


def test_a_reboot_that_was_not_heard_at_first_still_counts(device: UpdatingDevice) -> None:
    device.faults.ignored_reboots = 1
    device.begin()
    device.run()
    assert device.state is AttemptState.COMPLETED
    assert "reboot noted" in device.told()


@pytest.mark.clause("SYS-2")
@pytest.mark.parametrize("method", ["lock_holder", "package_problems", "volumes", "simulation", "start", "observe"])
def test_a_machine_that_does_not_answer_fails_the_attempt_before_anything_is_changed(
    device: UpdatingDevice, method: str
) -> None:
    device.faults.errors = {method: f"{method} gave no answer within 2 minutes"}
    device.begin()
    device.run()
    assert (device.state, device.message) == (AttemptState.FAILED, f"{method} gave no answer within 2 minutes")


@pytest.mark.parametrize("method", ["lock_holder", "package_problems", "observe", "expected_kernel", "reboot"])
def test_a_machine_that_does_not_answer_after_that_is_asked_again(device: UpdatingDevice, method: str) -> None:
    device.begin()
    device.run_to("upgrade", "began")
    device.faults.errors = {method: "no answer"}
    device.run(lambda: device.standing() == "no answer")
    device.faults.errors = {}
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.clause("SYS-2")
@pytest.mark.parametrize(
    ("later", "found"),
    [
        (Faults(removes=["podman"]), "It would remove podman, which the fleet needs"),
        (Faults(needs={"/boot": 10}, free={"/boot": 9}), "/boot needs 10 bytes and has 9 free"),
        (Faults(errors={"simulation": "apt-get --simulate ended with exit code 100"}), "apt-get --simulate ended with"),
    ],
)
def test_apt_that_was_cut_off_is_simulated_again_before_it_is_started_again(
    device: UpdatingDevice, later: Faults, found: str
) -> None:
    """The device may have been off for a week, and has fetched other package lists since."""
    device.faults.breaks = False
    device.begin()
    device.run_to("upgrade", "began")
    later.breaks = False
    device.machine.faults = later
    device.cut_power()
    device.run()
    assert (device.state, device.machine.upgrades_started) == (AttemptState.FAILED, 1)
    assert device.message.startswith("apt was cut off, no package is left half installed, and it is not started again")
    assert found in device.message


@pytest.mark.clause("SYS-1")
def test_an_updater_that_has_no_apt_does_not_offer_upgrades(device: UpdatingDevice) -> None:
    assert capabilities(device) == ["AptFullUpgradeV1"]
    device.machine.can_upgrade = lambda: False  # type: ignore[method-assign]
    assert capabilities(device) == []


def capabilities(device: UpdatingDevice) -> list[str]:
    reply = device.updater.answer(GetStatus())
    assert isinstance(reply, UpdaterStatus)
    return reply.capabilities
