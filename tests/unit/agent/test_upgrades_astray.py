"""Between control plane and updater when one of them is missing, forgets, or asks for less."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from agent.config import load
from agent.control import ControlError, Unreachable
from agent.ledger import Ledger
from agent.outbox import Outbox
from agent.store import Store
from agent.updater.server import Server
from agent.upgrades.client import SocketUpdater
from agent.upgrades.desk import ATTEMPT_LOST, UPDATER_UNAVAILABLE, UpgradeDesk
from agent.upgrades.memory import KeptAttempts, Told
from agent.upgrades.patience import PatientOffers
from agent.wire.messages import (
    MAX_REPORT_BYTES,
    AttemptDocument,
    AttemptOffer,
    AttemptReport,
    AttemptState,
    Facts,
    JournalEntry,
    Report,
    ReportReply,
)
from agent.wire.updater import AnyReply
from demo.devices import prepare
from tests.support.devices import ManualClock
from tests.support.updaters import OTHER, UID, UpdatingDevice
from tests.support.upgrading_agents import target
from tests.unit.agent.test_upgrades import COMPLETED, FAILED, REFUSED, Fleet

ENDS = (COMPLETED, FAILED, REFUSED)


@contextmanager
def listening(device: UpdatingDevice, socket: Path) -> Iterator[None]:
    server = Server(socket, device.updater.answer, allowed=[os.getuid()])
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield
    finally:
        server.stop()
        thread.join(10)


@pytest.mark.clause("SYS-7")
def test_an_updater_that_was_stopped_is_missed_also_after_a_restart_of_the_agent(tmp_path: Path):
    device, socket = UpdatingDevice(tmp_path / "updater"), tmp_path / "updater.sock"
    ledger = Ledger(device.clock, [])
    desk = UpgradeDesk(SocketUpdater(socket), Store(tmp_path / "agent"), ledger, str)
    with listening(device, socket):
        desk.work(pytest.fail)
        assert desk.capabilities() == ["AptFullUpgradeV1"]
    for again in (desk, UpgradeDesk(SocketUpdater(socket), Store(tmp_path / "agent"), ledger, str)):
        again.work(pytest.fail)
        assert again.capabilities() == []
        (problem,) = ledger.problems()
        assert problem.reason == UPDATER_UNAVAILABLE
        assert "systemctl status harmony-fleet-updater" in problem.message


@pytest.mark.clause("SYS-7")
def test_an_executor_of_a_later_version_is_refused_and_nothing_else_is_done_instead(tmp_path: Path):
    fleet = Fleet(tmp_path)
    fleet.desk.take([AttemptDocument(attempt=UID, task="default/disk", executor="replaceDiskV2")])
    fleet.desk.work(fleet.offer)
    fleet.report()
    assert fleet.device.store.attempt(UID) is None
    assert fleet.states[UID] is REFUSED
    assert "replaceDiskV2" in fleet.sentences[UID]


@pytest.mark.parametrize("podman", [None, Path("/run/podman.sock")])
def test_devices_of_the_demo_never_ask_the_updater_of_the_machine_it_runs_on(tmp_path: Path, podman: Path | None):
    device = prepare(tmp_path, "demo-1", server="http://127.0.0.1:8000", socket=podman)
    assert Path(load(device.config).updater.socket).is_relative_to(tmp_path)


@pytest.mark.clause("SYS-3")
def test_a_refusal_is_remembered_over_a_restart_without_network(tmp_path: Path):
    fleet = Fleet(tmp_path)
    fleet.remaining[UID] = 0
    fleet.poll()
    fleet.desk.work(fleet.offer)
    fleet.is_reachable = False
    fleet.restart_agent()
    fleet.turn()
    assert [report.state for report in fleet.desk.reports()] == [REFUSED]


@pytest.mark.clause("SYS-3")
def test_an_updater_that_forgot_what_it_had_begun_is_told_with_the_way_out(tmp_path: Path):
    fleet = Fleet(tmp_path)
    fleet.run(lambda: fleet.states.get(UID) is AttemptState.RUNNING)
    shutil.rmtree(fleet.device.folder)
    fleet.device.start()
    fleet.turn()
    assert UID in fleet.problems()[ATTEMPT_LOST]
    assert "give-up" in fleet.problems()[ATTEMPT_LOST]
    fleet.wanted = []
    fleet.turn()
    assert ATTEMPT_LOST not in fleet.problems()


class TakingAll:
    """A control plane that acknowledges every report that it may take in."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def report(self, report: Report) -> ReportReply:
        if len(msgspec.json.encode(report)) > MAX_REPORT_BYTES:
            raise ControlError("too large", is_temporary=False)
        self.numbers += [entry.number for item in report.attempts for entry in item.entries if item.attempt == "1"]
        return ReportReply(sequence=report.sequence)


class Journals:
    """Sixteen of them, as long and as badly printable as they can be."""

    def __init__(self) -> None:
        entries = [JournalEntry(number=n, step="upgrade", event="noted", message="\x1b" * 4096) for n in range(1, 41)]
        self.left = {str(uid): entries for uid in range(16)}

    def reports(self) -> list[AttemptReport]:
        return [AttemptReport(attempt=uid, state=FAILED, entries=left) for uid, left in self.left.items() if left]

    def acknowledge(self, reports: list[AttemptReport], boot_id: str) -> None:
        for report in reports:
            self.left[report.attempt] = self.left[report.attempt][len(report.entries) :]


@pytest.mark.clause("SYS-3")
def test_journals_that_are_too_large_for_one_report_come_in_several_whole(tmp_path: Path):
    clock, journals, control = ManualClock(), Journals(), TakingAll()
    outbox = Outbox(Store(tmp_path), Ledger(clock, []), clock, lambda: Facts(boot_id="b"), journals)
    for _ in range(60):
        outbox.send(control, None)  # type: ignore[arg-type]
    assert not journals.reports()
    assert control.numbers == list(range(1, 41))


@pytest.mark.case("E6")
def test_a_control_plane_that_wants_quiet_is_not_asked_for_seconds_meanwhile():
    clock, asked = ManualClock(), 0

    def ask(uid: str) -> AttemptOffer:
        nonlocal asked
        asked += 1
        raise ControlError("overloaded", retry_after=120.0)

    offers = PatientOffers(ask, clock, random.Random(1))  # noqa: S311
    for _ in range(60):
        with pytest.raises(ControlError, match="overloaded"):
            offers(UID)
        clock.forward(2)
    assert asked == 1
    with pytest.raises(ControlError):
        offers(UID)
    assert asked == 2


@pytest.mark.case("E6")
def test_it_is_asked_more_and_more_rarely_and_at_once_again_after_an_answer():
    clock, asked, is_reachable = ManualClock(), 0, False

    def ask(uid: str) -> AttemptOffer:
        nonlocal asked
        asked += 1
        if not is_reachable:
            raise Unreachable("no answer")
        return AttemptOffer(attempt=uid, executor="systemUpgradeV1", remaining_seconds=60)

    offers = PatientOffers(ask, clock, random.Random(1))  # noqa: S311
    for _ in range(1800):
        with pytest.raises(Unreachable):
            offers(UID)
        clock.forward(2)
    assert asked < 40  # in an hour
    is_reachable = True
    clock.forward(300)
    before = asked
    assert [offers(UID).remaining_seconds for _ in range(3)] == [60, 60, 60]
    assert asked == before + 3


@pytest.mark.clause("TSK-4")
def test_seconds_that_pass_while_they_are_asked_for_are_gone():
    clock, slow = ManualClock(), [0.0, 0.2, 25.0, 3600.0]

    def ask(uid: str) -> AttemptOffer:
        clock.forward(slow.pop(0))
        return AttemptOffer(attempt=uid, executor="agentUpgradeV1", remaining_seconds=60)

    offers = PatientOffers(ask, clock, random.Random(1))  # noqa: S311
    assert [offers(UID).remaining_seconds for _ in range(4)] == [60, 59, 35, 0]


@pytest.mark.clause("UPG-4")
def test_a_lost_agent_upgrade_is_given_up_by_its_own_command_also_after_a_failed_rollback(tmp_path: Path):
    store = Store(tmp_path)
    store.save_attempts(KeptAttempts(told={UID: Told(9, AttemptState.ROLLBACK_FAILED)}, has_updater=True))
    ledger = Ledger(ManualClock(), [])
    updater = UpdatingDevice(tmp_path / "updater", agent=False).updater
    desk = UpgradeDesk(Answering(updater.answer), store, ledger, lambda: "")
    desk.take([AttemptDocument(attempt=UID, task="", executor="agentUpgradeV1", agent_upgrade=target())])
    desk.work(pytest.fail)
    (problem,) = ledger.problems()
    assert problem.reason == ATTEMPT_LOST
    assert problem.message.endswith("fleetctl device give-up-upgrade NAME")


class Answering:
    """An updater that is asked without a socket between."""

    def __init__(self, answer: Callable[[Any], AnyReply]) -> None:
        self.ask = answer


class Site(Fleet):
    """Two attempts, and a control plane that takes items away when attempts are over or withdrawn."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.remaining, self.wanted = {UID: 600, OTHER: 600}, [UID, OTHER]
        self.withdrawn: set[str] = set()

    def report(self, *, is_answer_lost: bool = False) -> None:
        before = dict(self.states)
        super().report(is_answer_lost=is_answer_lost)
        for uid, state in before.items():
            assert state not in ENDS or self.states[uid] is state, "an end was taken back"
        self.wanted = [uid for uid in self.wanted if self.states.get(uid) not in ENDS]
        self.remaining |= {uid: 0 for uid, state in self.states.items() if state in ENDS}

    def withdraw(self, uid: str) -> None:
        """As the control plane does it: only what has not been heard of."""
        if self.is_reachable and uid not in self.states:
            self.withdrawn.add(uid)
            self.wanted = [each for each in self.wanted if each != uid]
            self.remaining[uid] = 0

    def has_ended(self, uid: str) -> bool:
        attempt = self.device.store.attempt(uid)
        if attempt is None:
            return uid in self.withdrawn or self.states.get(uid) is REFUSED
        is_over = attempt.state in (*ENDS, AttemptState.REPAIR_REQUIRED) and self.states.get(uid) is attempt.state
        return is_over and self.has_whole_journal(uid)


BLOWS = [
    *("turn", "turn", "turn", "turn", "agent", "updater", "power", "lost answer"),
    *("offline", "online", "stopped", "started", "withdraw", "withdraw other"),
]


@pytest.mark.clause("SYS-3", "TSK-4")
@settings(max_examples=60)
@given(blows=st.lists(st.sampled_from(BLOWS), max_size=50))
def test_whatever_goes_astray_everything_ends_on_both_sides_alike(
    tmp_path_factory: pytest.TempPathFactory, blows: list[str]
):
    site = Site(tmp_path_factory.mktemp("site"))
    happen = {
        "turn": site.turn,
        "agent": site.restart_agent,
        "updater": site.device.start,
        "power": lambda: (site.device.cut_power(), site.restart_agent()),
        "lost answer": lambda: site.report(is_answer_lost=True),
        "offline": lambda: setattr(site, "is_reachable", False),
        "online": lambda: setattr(site, "is_reachable", True),
        "stopped": lambda: setattr(site, "listens", False),
        "started": lambda: setattr(site, "listens", True),
        "withdraw": lambda: site.withdraw(UID),
        "withdraw other": lambda: site.withdraw(OTHER),
    }
    for blow in blows:
        happen[blow]()
    site.is_reachable = site.listens = True
    site.turn()
    site.run(lambda: site.has_ended(UID) and site.has_ended(OTHER), 900)
    site.turn()
    assert site.desk.reports() == [] or AttemptState.REPAIR_REQUIRED in site.states.values()
    assert not {ATTEMPT_LOST, UPDATER_UNAVAILABLE} & site.problems().keys()
