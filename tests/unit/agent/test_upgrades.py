"""Between control plane and updater: the real core on a simulated machine below, a control plane played above."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from agent.control import ControlError, Unreachable
from agent.ledger import Ledger
from agent.store import Store
from agent.updater.simulated import Faults
from agent.upgrades.client import NoUpdater, SocketUpdater, UpdaterError, understood
from agent.upgrades.desk import ATTEMPT_WAITS, UPDATER_UNAVAILABLE, UpgradeDesk
from agent.wire.messages import AttemptDocument, AttemptOffer, AttemptState
from agent.wire.updater import AnyReply, Request, UpdaterStatus
from tests.support.updaters import OTHER, UID, UpdatingDevice

COMPLETED, FAILED, REFUSED = AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.REFUSED


class Fleet:
    """A device, its agent's desk, and the control plane's half of the conversation."""

    def __init__(self, folder: Path, faults: Faults | None = None) -> None:
        self.device = UpdatingDevice(folder / "updater", faults or Faults(), agent=False)
        self.folder = folder / "agent"
        self.remaining: dict[str, int] = {UID: 600}
        self.wanted: list[str] = [UID]
        self.is_reachable = True
        self.listens = True
        self.lacks = ""
        self.states: dict[str, AttemptState] = {}
        self.journals: dict[str, dict[int, str]] = {}
        self.sentences: dict[str, str] = {}
        self.restart_agent()

    def restart_agent(self) -> None:
        """A new process with what its state folder has."""
        self.ledger = Ledger(self.device.clock, [])
        self.desk = UpgradeDesk(self, Store(self.folder), self.ledger, lambda: self.lacks)

    def ask(self, request: Request) -> AnyReply:
        if not self.listens or not self.device.machine.is_up:
            raise UpdaterError("the updater does not run")
        return understood(msgspec.json.encode(self.device.updater.answer(request)))

    def offer(self, attempt: str) -> AttemptOffer:
        if not self.is_reachable:
            raise Unreachable("no answer")
        if attempt not in self.remaining:
            raise ControlError("this device has no such attempt", is_temporary=False)
        return AttemptOffer(attempt=attempt, executor="systemUpgradeV1", remaining_seconds=self.remaining[attempt])

    def poll(self) -> None:
        if self.is_reachable:
            self.desk.take([AttemptDocument(uid, "default/upgrade", "systemUpgradeV1") for uid in self.wanted])

    def report(self, *, is_answer_lost: bool = False) -> None:
        if not self.is_reachable:
            return
        reports = self.desk.reports()
        for report in reports:
            self.states[report.attempt] = report.state
            self.sentences[report.attempt] = report.message
            for entry in report.entries:
                self.journals.setdefault(report.attempt, {})[entry.number] = f"{entry.step} {entry.event}"
        if not is_answer_lost:
            self.desk.acknowledge(reports, self.device.machine.boot_id())

    def turn(self) -> None:
        """What happens within some seconds: all of it, once."""
        self.poll()
        self.desk.work(self.offer)
        self.report()
        self.device.turn()

    def run(self, until: Callable[[], bool], turns: int = 400) -> None:
        for _ in range(turns):
            if until():
                return
            self.turn()
        raise AssertionError(f"{self.states} {self.sentences} {[p.message for p in self.ledger.problems()]}")

    def is_over(self, uid: str = UID) -> bool:
        return self.states.get(uid) in (COMPLETED, FAILED, REFUSED)

    def has_whole_journal(self, uid: str = UID) -> bool:
        told = [f"{record.step} {record.event.value}" for record in self.device.attempt(uid).records]
        return self.journals.get(uid) == dict(enumerate(told, start=1))

    def problems(self) -> dict[str, str]:
        return {problem.reason: problem.message for problem in self.ledger.problems()}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.mark.clause("SYS-3")
@pytest.mark.clause("SYS-4")
def test_an_upgrade_runs_to_its_proof_and_its_whole_journal_arrives(fleet: Fleet):
    fleet.run(fleet.is_over)
    fleet.run(fleet.has_whole_journal, 5)
    assert fleet.states[UID] is COMPLETED
    assert list(fleet.journals[UID].values())[-1] == "verify ended"


@pytest.mark.clause("SYS-3")
def test_what_was_acknowledged_is_said_no_more_even_after_a_restart(fleet: Fleet):
    fleet.run(lambda: fleet.is_over() and fleet.has_whole_journal())
    fleet.turn()
    assert fleet.desk.reports() == []
    fleet.restart_agent()
    fleet.turn()
    assert fleet.desk.reports() == []


@pytest.mark.clause("SYS-3")
def test_nothing_is_lost_while_the_network_is_gone(fleet: Fleet):
    fleet.run(lambda: fleet.states.get(UID) is AttemptState.RUNNING)
    fleet.is_reachable = False
    fleet.run(lambda: fleet.device.attempt().place.step == "verify")
    for _ in range(20):
        fleet.turn()
    assert fleet.device.state is AttemptState.RUNNING  # nobody has heard of it, so it is not proven
    fleet.is_reachable = True
    fleet.run(lambda: fleet.is_over() and fleet.has_whole_journal())
    assert fleet.states[UID] is COMPLETED


@pytest.mark.clause("TSK-4")
def test_without_seconds_it_never_begins_and_says_so(fleet: Fleet):
    fleet.remaining[UID] = 0
    fleet.run(fleet.is_over)
    assert fleet.states[UID] is REFUSED
    assert fleet.device.store.attempt(UID) is None
    fleet.turn()
    assert fleet.desk.reports() == []


@pytest.mark.clause("TSK-4")
def test_what_was_withdrawn_before_it_began_is_forgotten(fleet: Fleet):
    fleet.is_reachable = False
    fleet.desk.take([AttemptDocument(UID, "default/upgrade", "systemUpgradeV1")])
    fleet.desk.work(fleet.offer)
    assert "waits for the control plane" in fleet.problems()[ATTEMPT_WAITS]
    fleet.is_reachable, fleet.wanted, fleet.remaining = True, [], {}
    for _ in range(3):
        fleet.turn()
    assert fleet.device.store.attempt(UID) is None
    assert ATTEMPT_WAITS not in fleet.problems()


@pytest.mark.clause("TSK-4")
def test_an_accepted_attempt_goes_on_when_it_is_not_wanted_any_more(fleet: Fleet):
    fleet.run(lambda: fleet.states.get(UID) is AttemptState.RUNNING)
    fleet.wanted = []
    fleet.run(fleet.is_over)
    assert fleet.states[UID] is COMPLETED


@pytest.mark.clause("TSK-4")
def test_after_a_boot_before_it_began_the_control_plane_is_asked_again(fleet: Fleet):
    fleet.poll()
    fleet.desk.work(fleet.offer)
    fleet.device.cut_power()
    fleet.remaining[UID] = 0
    fleet.run(fleet.is_over)
    assert fleet.states[UID] is FAILED
    assert "deadline" in fleet.sentences[UID]


@pytest.mark.clause("TSK-5")
def test_a_second_attempt_waits_for_the_first_and_says_so(fleet: Fleet):
    fleet.run(lambda: fleet.states.get(UID) is AttemptState.RUNNING)
    fleet.wanted, fleet.remaining = [UID, OTHER], {UID: 600, OTHER: 600}
    fleet.turn()
    assert OTHER in fleet.problems()[ATTEMPT_WAITS]
    fleet.run(lambda: fleet.is_over(OTHER))
    assert ATTEMPT_WAITS not in fleet.problems()


@pytest.mark.clause("SYS-6")
def test_a_device_that_needs_repair_refuses_with_the_command(tmp_path: Path):
    fleet = Fleet(tmp_path, Faults(exit_codes={"upgrade": 100}))
    fleet.run(lambda: fleet.states.get(UID) is AttemptState.REPAIR_REQUIRED)
    fleet.wanted, fleet.remaining[OTHER] = [OTHER], 600
    fleet.run(lambda: fleet.is_over(OTHER))
    assert fleet.states[OTHER] is REFUSED
    assert "fleet-updater repair" in fleet.sentences[OTHER]


@pytest.mark.clause("SYS-7")
def test_capabilities_are_those_of_an_updater_that_answers(fleet: Fleet):
    fleet.turn()
    assert fleet.desk.capabilities() == ["AptFullUpgradeV1"]
    fleet.listens = False
    fleet.turn()
    assert fleet.desk.capabilities() == []
    assert fleet.problems()[UPDATER_UNAVAILABLE] == "the updater does not run"
    fleet.listens = True
    fleet.run(fleet.is_over)
    assert UPDATER_UNAVAILABLE not in fleet.problems()


def test_a_device_without_updater_complains_only_when_one_is_wanted(tmp_path: Path):
    ledger = Ledger(UpdatingDevice(tmp_path / "unused").clock, [])
    desk = UpgradeDesk(SocketUpdater(tmp_path / "none.sock"), Store(tmp_path / "agent"), ledger, str)
    desk.work(lambda uid: pytest.fail(f"{uid} was asked for"))
    assert ledger.problems() == []
    desk.take([AttemptDocument(UID, "default/upgrade", "systemUpgradeV1")])
    desk.work(lambda uid: pytest.fail(f"{uid} was asked for"))
    (problem,) = ledger.problems()
    assert "fleet-agent setup" in problem.message


@pytest.mark.clause("SYS-7")
def test_another_protocol_is_named_with_both_numbers():
    with pytest.raises(UpdaterError, match="protocol 2 and this agent 1"):
        understood(msgspec.json.encode(UpdaterStatus(version="9", boot_id="b", protocol=2)))
    with pytest.raises(UpdaterError, match="cannot be understood"):
        understood(b'{"reply": "poem"}')
    with pytest.raises(NoUpdater):
        SocketUpdater(Path("/nowhere/updater.sock")).ask(None)  # type: ignore[arg-type]


BLOWS = st.lists(
    st.sampled_from(["turn", "turn", "turn", "agent", "updater", "power", "lost answer", "offline", "online"]),
    max_size=40,
)


@pytest.mark.clause("SYS-3")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(blows=BLOWS)
def test_whatever_happens_the_end_and_the_whole_journal_arrive(
    tmp_path_factory: pytest.TempPathFactory, blows: list[str]
):
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    happen = {
        "turn": fleet.turn,
        "agent": fleet.restart_agent,
        "updater": fleet.device.start,
        "power": lambda: (fleet.device.cut_power(), fleet.restart_agent()),
        "lost answer": lambda: fleet.report(is_answer_lost=True),
        "offline": lambda: setattr(fleet, "is_reachable", False),
        "online": lambda: setattr(fleet, "is_reachable", True),
    }
    for blow in blows:
        happen[blow]()
    fleet.is_reachable = True
    ends = (COMPLETED, FAILED, REFUSED, AttemptState.REPAIR_REQUIRED)
    fleet.run(lambda: fleet.states.get(UID) in ends and fleet.has_whole_journal(), 600)
    assert fleet.states[UID] is fleet.device.state
