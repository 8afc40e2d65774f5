"""With, without and against the control plane: state on disk, reports, credentials, back-off."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.app import enrol
from agent.control import ControlError
from agent.runtime.base import State
from agent.status import Status, lines
from agent.wire.messages import DeploymentState
from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API, faults, names

# Without the control plane -------------------------------------------------------------------------------------------


@pytest.mark.clause("AGT-8")
def test_the_agent_starts_and_repairs_without_the_control_plane(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.go()
    edge.settle()
    for container in edge.runtime.containers():
        edge.runtime.remove(container.id)
    control.refuse_with = 503
    edge.boot()
    edge.engine.network()
    edge.engine.local()
    assert names(edge) == {"api": State.RUNNING}


@pytest.mark.clause("AGT-8")
def test_a_torn_state_file_is_reported_and_the_control_plane_fills_the_gap(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.go()
    (edge.config.state_dir / "desired.json").write_bytes(b'{"format": 1, "ki')
    edge.boot()
    edge.go()
    edge.settle()
    assert control.last("u1").state is DeploymentState.CONVERGED
    (problem,) = control.reports[-1].problems
    assert problem.reason == "StateFileSetAside"


@pytest.mark.clause("AGT-9")
def test_an_older_desired_state_is_ignored_until_the_epoch_grows(edge: Edge, control: FakeControlPlane):
    control.version = 40
    control.want("u1", score(API))
    edge.go()
    control.items.clear()
    control.version = 12
    edge.go()
    assert names(edge) == {"api": State.RUNNING}
    assert control.reports[-1].desired_version == 41
    control.epoch = 2
    edge.go()
    assert names(edge) == {}
    assert (control.reports[-1].epoch, control.reports[-1].desired_version) == (2, 12)


def test_a_desired_state_of_another_device_is_ignored_and_said(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    control.uid = "another"
    edge.go()
    assert names(edge) == {}
    assert control.reports[-1].problems[0].reason == "DesiredStateOfAnotherDevice"


def test_an_unchanged_desired_state_costs_one_304(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.go()
    control.calls.clear()
    edge.agent.poll()
    assert control.calls == [("/api/agent/v1/desired", 304)]


def test_a_document_with_another_hash_is_refused_and_asked_for_again(edge: Edge, control: FakeControlPlane):
    hash_ = control.want("u1", score(API))
    right = control.documents[hash_]
    control.documents[hash_] = right.replace(b"api:1", b"api:6")
    control.want("u2", score(service("web", "r.example/web:1")), name="web")
    edge.go()
    assert names(edge) == {"web": State.RUNNING}, "one document that cannot be had holds up no other"
    assert "its definition is not here: document" in control.last("u1").message
    control.documents[hash_] = right
    edge.go()
    assert names(edge) == {"web": State.RUNNING, "api": State.RUNNING}


def test_a_document_that_breaks_the_rules_is_refused(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API, API))
    edge.go()
    assert names(edge) == {}
    assert "its definition is refused: spec.score.data.services[1].name" in control.last("u1").message


# Reports -------------------------------------------------------------------------------------------------------------


@pytest.mark.case("R11")
def test_a_report_whose_answer_was_lost_is_repeated_until_it_is_acknowledged(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.go()
    edge.clock.forward(10)
    edge.agent.reconcile()
    control.lose_replies = True
    with pytest.raises(ControlError):
        edge.agent.report()
    assert control.last("u1").state is DeploymentState.CONVERGED
    taken = control.reports[-1].sequence
    control.lose_replies = False
    edge.until(lambda: edge.agent.outbox.acknowledged >= taken, within=60)
    assert [report.sequence for report in control.reports] == sorted({r.sequence for r in control.reports})


@pytest.mark.case("R11")
def test_report_numbers_grow_over_restarts_and_after_lost_state(edge: Edge, control: FakeControlPlane):
    for _ in range(3):
        edge.go()
        edge.boot()
    (edge.config.state_dir / "reports.json").unlink()
    edge.boot()
    highest = control.reports[-1].sequence
    control.want("u1", score(API))
    edge.until(lambda: control.reports[-1].sequence > highest, within=5)
    assert control.last("u1").uid == "u1"


def test_a_report_that_is_refused_for_what_it_is_is_not_repeated_for_ever(edge: Edge, control: FakeControlPlane):
    control.refuse_with = 400
    edge.until(lambda: control.calls[-1] == ("/api/agent/v1/report", 400))
    control.refuse_with = 0
    edge.until(lambda: bool(control.reports))
    assert control.reports[0].sequence > 1, "a new snapshot, not the refused one"


def test_a_report_that_is_too_large_says_the_states_all_the_same(edge: Edge, control: FakeControlPlane):
    for number in range(300):
        edge.agent.ledger.record(f"u{number}", 1, DeploymentState.FAILED, "x" * 5000, {"api": "sha256:" + "0" * 64})
    edge.agent.report()
    assert len(control.reports[-1].deployments) == 300
    assert control.last("u7").state is DeploymentState.FAILED
    assert len(control.last("u7").message) == 200
    assert control.last("u7").images


def test_changes_are_reported_at_once_and_heartbeats_at_their_interval(edge: Edge, control: FakeControlPlane):
    edge.until(lambda: len(control.reports) >= 2)
    quiet = len(control.reports)
    edge.until(lambda: len(control.reports) > quiet, within=31)
    assert edge.clock.now() - control.reports[quiet - 1].sent_at == pytest.approx(30, abs=1)
    control.want("u1", score(API))
    begin = edge.clock.now()
    edge.until(lambda: any(r.deployments for r in control.reports), within=12)
    assert edge.clock.now() - begin <= 11


@pytest.mark.case("E3")
def test_an_agent_that_is_not_accepted_backs_off_says_so_and_takes_a_new_credential(
    edge: Edge, control: FakeControlPlane
):
    edge.until(lambda: bool(control.reports))
    control.credential = "credential-2"
    control.calls.clear()
    edge.until(lambda: edge.clock.now() > 1_796_003_600, within=4000, step=5)
    assert len(control.calls) < 30, "an hour of refusals"
    text = "\n".join(lines(edge.agent.store.status(Status), is_running=True))
    assert "Contact error   the control plane answered 401: the credential is not known" in text
    assert "fleet-agent enroll --token-file FILE" in text
    before = len(control.reports)
    enrol(edge.config, control.token)
    edge.until(lambda: len(control.reports) > before, within=2)
    assert not edge.agent.store.status(Status).is_unauthorised


@pytest.mark.case("E6")
def test_the_pause_that_the_server_asks_for_is_kept(edge: Edge, control: FakeControlPlane):
    edge.until(lambda: bool(control.reports))
    control.refuse_with, control.retry_after = 503, "120"
    edge.until(lambda: control.calls[-1][1] == 503, within=60)
    control.refuse_with, control.retry_after = 0, ""
    asked = len(control.calls)
    begin = edge.clock.now()
    edge.until(lambda: len(control.calls) > asked, within=200)
    assert edge.clock.now() - begin >= 100


def test_no_runtime_is_said_and_nothing_is_claimed(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.go()
    edge.settle()
    faults(edge).unreachable = True
    edge.go()
    report = control.reports[-1]
    assert control.last("u1").state is DeploymentState.PROGRESSING
    assert control.last("u1").message == "the containers cannot be seen: the simulated runtime cannot be reached"
    assert [problem.reason for problem in report.problems] == ["RuntimeUnreachable"]
    faults(edge).unreachable = False
    edge.go()
    assert control.last("u1").state is DeploymentState.CONVERGED
    assert control.reports[-1].problems == []


@pytest.mark.clause("AGT-8")
def test_a_full_disk_stops_neither_work_nor_reports(
    edge: Edge, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch
):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    control.want("u1", score(API))
    edge.until(lambda: control.says("u1", "converged"))
    assert [problem.reason for problem in control.reports[-1].problems] == ["StateNotSaved"]


def test_a_netrc_file_does_not_replace_the_credential(
    edge: Edge, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    edge.go()
    assert control.calls[-1] == ("/api/agent/v1/report", 200)
