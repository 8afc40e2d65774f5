"""``fleet-updater repair``: what root sees, what is done, and what the journal says of it (SYS-6)."""

from __future__ import annotations

import pytest

from agent.updater.binary.simulated import SimulatedHost
from agent.updater.machine import MachineError
from agent.updater.repair import LOCK, Repair
from agent.updater.store import Busy, JournalStore
from agent.wire.messages import AttemptState
from agent.wire.updater import GetJournal, JournalPage, Standing
from tests.support.updaters import OTHER, UID, UpdatingDevice

FOUND = "dpkg was interrupted: libexample1 is half configured"


@pytest.fixture
def broken(device: UpdatingDevice) -> UpdatingDevice:
    """A device whose upgrade was cut off in the middle of dpkg; its updater runs on."""
    device.begin()
    device.run_to("upgrade", "began")
    device.clock.forward(1.0)
    device.cut_power()
    device.run()
    assert device.state is AttemptState.REPAIR_REQUIRED
    return device


def repair(device: UpdatingDevice) -> tuple[bool, list[str]]:
    """As another process does it beside the updater."""
    said: list[str] = []
    store, host = JournalStore(device.folder, sync=False), SimulatedHost(device.clock)
    done = Repair(store, device.machine, host, said.append, device.clock.forward).run()
    return done, said


@pytest.mark.clause("SYS-6")
def test_root_sees_the_state_and_each_program_and_the_journal_keeps_it(broken: UpdatingDevice) -> None:
    done, said = repair(broken)
    assert done
    assert said == [
        f"attempt {UID} stopped in its step upgrade: The package transaction was interrupted; run as root:"
        f" fleet-updater repair. Found: {FOUND}",
        f"the package database now: {FOUND}",
        "runs dpkg --configure -a",
        "runs apt-get -f install",
        "repaired: every package is fully installed; attempts are taken on again",
        "the upgrade was not verified: reboot the device, or let a new task run do the rest",
    ]
    records = [record for record in broken.attempt().records if record.step == "repair"]
    assert [(record.event, record.message) for record in records] == [
        ("began", f"Root repairs the packages; found: {FOUND}"),
        ("noted", "dpkg --configure -a ended with exit code 0: configure: done"),
        ("noted", "apt-get -f install ended with exit code 0: fix: done"),
        ("ended", "Root repaired the packages: every package is fully installed. The upgrade itself was not verified"),
    ]


@pytest.mark.clause("SYS-6")
def test_the_outcome_reaches_the_agent_and_the_next_attempt_may_begin(broken: UpdatingDevice) -> None:
    repair(broken)
    page = broken.updater.answer(GetJournal(attempt=UID))
    assert isinstance(page, JournalPage)
    assert (page.standing.state, page.entries[-1].step) == (AttemptState.FAILED, "repair")
    assert isinstance(broken.begin(OTHER), Standing)
    broken.run(lambda: not broken.attempt(OTHER).is_open)
    assert broken.attempt(OTHER).state is AttemptState.COMPLETED


@pytest.mark.clause("SYS-6")
def test_what_cannot_be_repaired_keeps_waiting_for_root(broken: UpdatingDevice) -> None:
    broken.faults.beyond_repair = True
    done, said = repair(broken)
    assert not done
    assert said[-2] == f"still not repaired: {FOUND}"
    assert broken.state is AttemptState.REPAIR_REQUIRED
    assert not isinstance(broken.begin(OTHER), Standing)
    broken.faults.beyond_repair = False
    assert repair(broken)[0]
    assert isinstance(broken.begin(OTHER), Standing)


@pytest.mark.clause("SYS-6")
def test_a_repair_that_is_cut_off_is_done_again(broken: UpdatingDevice) -> None:
    broken.faults.errors = {"observe": "systemd gives no answer"}
    with pytest.raises(MachineError, match="systemd gives no answer"):
        repair(broken)
    broken.faults.errors = {}
    broken.cut_power()
    assert broken.state is AttemptState.REPAIR_REQUIRED
    assert repair(broken)[0]


def test_nothing_is_touched_where_nothing_waits_for_root(device: UpdatingDevice) -> None:
    device.begin()
    device.run_to("upgrade", "began")
    assert repair(device) == (True, ["no attempt needs repair; see: fleet-updater status"])
    assert device.told()[-1] == "upgrade began"


def test_one_repair_at_a_time(broken: UpdatingDevice) -> None:
    with broken.store.hold(LOCK, ""), pytest.raises(Busy, match="another fleet-updater repair runs"):
        repair(broken)
