"""The word that commits an agent upgrade: by the agent it is about, when it is fit to stay, and once (UPG-4)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent.ledger import Ledger
from agent.releases.description import place
from agent.store import Store
from agent.upgrades.client import understood
from agent.upgrades.desk import NOT_READY, UpgradeDesk
from agent.version import VERSION
from agent.wire.messages import AttemptDocument, AttemptOffer, AttemptState
from agent.wire.updater import AnyReply, NoteReady, Request
from tests.support.updaters import UID
from tests.support.upgrading_agents import UpgradingAgent, target

pytestmark = pytest.mark.clause("UPG-4")


class OnTrial:
    """A device that upgrades to this very version; ``lacks`` is what the new agent has not proven yet."""

    def __init__(self, folder: Path, version: str = VERSION) -> None:
        self.device = UpgradingAgent(folder / "updater", target=target(version), is_fit=False)
        self.lacks = ""
        self.said: list[Request] = []
        self.ledger = Ledger(self.device.clock, [])
        self.desk = UpgradeDesk(self, Store(folder / "agent"), self.ledger, lambda: self.lacks)

    def ask(self, request: Request) -> AnyReply:
        self.said.append(request)
        return understood(msgspec.json.encode(self.device.updater.answer(request)))  # type: ignore[arg-type]

    def work(self) -> float:
        return self.desk.work(lambda uid: AttemptOffer(attempt=uid, executor="agentUpgradeV1", remaining_seconds=600))

    def words(self) -> list[NoteReady]:
        return [request for request in self.said if isinstance(request, NoteReady)]

    def problem(self) -> str:
        return next((each.message for each in self.ledger.problems() if each.reason == NOT_READY), "")


@pytest.fixture
def on_trial(tmp_path: Path) -> OnTrial:
    return begun(OnTrial(tmp_path))


def begun(trial: OnTrial) -> OnTrial:
    """The attempt came from the control plane, and the candidate was started."""
    document = AttemptDocument(attempt=UID, task="", executor="agentUpgradeV1", agent_upgrade=trial.device.target)
    trial.desk.take([document])
    trial.work()
    trial.device.run_to("readiness", "began")
    return trial


def test_an_agent_that_is_fit_says_so_once_and_stays(on_trial: OnTrial) -> None:
    assert on_trial.work() <= 2
    assert on_trial.words() == [NoteReady(UID, VERSION)]
    on_trial.work()
    on_trial.device.run()
    on_trial.work()
    assert len(on_trial.words()) == 1
    assert on_trial.device.state is AttemptState.COMPLETED
    assert on_trial.device.the_host.link == place(on_trial.device.target)


def test_until_then_it_says_what_it_waits_for(on_trial: OnTrial) -> None:
    on_trial.lacks = "Podman to answer"
    on_trial.work()
    assert on_trial.words() == []
    assert on_trial.problem().endswith("it still waits for Podman to answer")
    on_trial.lacks = ""
    on_trial.work()
    assert on_trial.problem() == ""
    assert on_trial.words()


def test_an_agent_of_another_version_says_nothing(tmp_path: Path) -> None:
    trial = begun(OnTrial(tmp_path, "9.9.9"))
    trial.work()
    assert trial.words() == []


def test_an_attempt_that_says_no_target_is_refused(tmp_path: Path) -> None:
    trial = OnTrial(tmp_path)
    trial.desk.take([AttemptDocument(attempt=UID, task="", executor="agentUpgradeV1")])
    trial.work()
    (report,) = trial.desk.reports()
    assert report.state is AttemptState.REFUSED
    assert "agentUpgradeV1" in report.message


@pytest.mark.clause("TSK-4")
def test_an_attempt_that_is_not_wanted_any_more_gets_no_second(tmp_path: Path) -> None:
    trial = OnTrial(tmp_path)
    trial.desk.take([AttemptDocument(attempt=UID, task="", executor="agentUpgradeV1", agent_upgrade=target())])
    trial.work()
    trial.device.cut_power()
    trial.desk.take([])
    trial.desk.work(lambda uid: AttemptOffer(attempt=uid, executor="agentUpgradeV1", remaining_seconds=0))
    trial.device.turn()
    assert trial.device.state is AttemptState.FAILED
    assert "deadline" in trial.device.message
