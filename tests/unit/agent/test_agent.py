"""The agent as its control plane sees it: simulated containers, real HTTP, a clock that the test moves."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from agent.app import enrol
from agent.control import ControlError, Unauthorised
from agent.reconcile import labels
from agent.reconcile.labels import Owner
from agent.reconcile.reconciler import ThreadWorkers
from agent.runtime.base import ContainerSpec, Listener, State
from agent.runtime.simulated import SimulatedHost, SimulatedRuntime
from agent.status import Status, lines
from agent.wire.manifest import SecretEnvVar, SecretRef, Volume
from agent.wire.messages import DeploymentState
from agent.wire.ports import PortMapping
from harness.waiting import wait_until
from tests.support.devices import Edge, ManualClock
from tests.support.fake_control import FakeControlPlane, score, service

API = service("api", "r.example/api:1")
MIGRATE = service("migrate", "r.example/migrate:1")


def faults(edge: Edge):
    assert isinstance(edge.runtime, SimulatedRuntime)
    return edge.runtime.faults


def names(edge: Edge) -> dict[str, State]:
    return {container.name: container.state for container in edge.runtime.containers()}


# From desired state to a report --------------------------------------------------------------------------------------


@pytest.mark.clause("AGT-6")
def test_a_deployment_converges_after_its_settle_time(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API, init=MIGRATE), revision=4)
    edge.go()
    assert control.last("u1").state is DeploymentState.PROGRESSING
    edge.settle()
    report = control.last("u1")
    assert (report.state, report.revision, report.message) == (DeploymentState.CONVERGED, 4, "")
    assert report.since == edge.clock.now()
    assert report.images["api"] == f"sha256:{hashlib.sha256(b'r.example/api:1').hexdigest()}"


@pytest.mark.clause("DEV-4")
def test_facts_are_in_every_report(edge: Edge, control: FakeControlPlane):
    edge.go()
    facts = control.reports[-1].facts
    assert facts.labels == {"role": "analyzer"}
    assert facts.capabilities == ["PodmanV0"]
    assert facts.architecture in ("amd64", "arm64")
    assert facts.kernel
    assert facts.boot_id
    assert facts.os
    assert (facts.agent_version, facts.podman_version) == ("0.1.0", "simulated")


@pytest.mark.case("P5")
@pytest.mark.clause("AGT-6")
def test_a_runtime_that_lies_never_makes_a_deployment_converged(edge: Edge, control: FakeControlPlane):
    faults(edge).lie = ["api"]
    control.want("u1", score(API))
    for _ in range(5):
        edge.go()
        edge.settle(30)
        assert control.last("u1").state is DeploymentState.PROGRESSING
    faults(edge).lie = []
    edge.go()
    edge.settle()
    assert control.last("u1").state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-6")
def test_converged_is_withdrawn_when_a_service_dies(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(service("api", "r.example/api:1", restart_policy="no")))
    edge.go()
    edge.settle()
    (container,) = edge.runtime.containers()
    edge.runtime.end(container.id, 7)  # type: ignore[attr-defined]
    edge.go(retry=False)
    report = control.last("u1")
    assert report.state is DeploymentState.FAILED
    assert report.message == "service api exited with code 7: simulated failure of api"


@pytest.mark.clause("AGT-7")
def test_what_was_removed_by_hand_comes_back_at_the_next_pass(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.until(lambda: control.says("u1", "converged"))
    (container,) = edge.runtime.containers()
    edge.runtime.remove(container.id)
    edge.until(lambda: names(edge) == {"api": State.RUNNING}, within=35)


# Removal -------------------------------------------------------------------------------------------------------------


@pytest.mark.clause("DEP-14")
def test_removal_takes_init_and_services_and_is_said_until_it_is_dropped(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API, init=MIGRATE), revision=3)
    edge.go()
    control.remove("u1")
    edge.go()
    assert names(edge) == {}
    for _ in range(3):
        edge.go()
        assert (control.last("u1").state, control.last("u1").revision) == (DeploymentState.REMOVED, 3)
    control.drop("u1")
    edge.go()
    assert control.reports[-1].deployments == []


@pytest.mark.clause("DEP-14")
def test_what_is_not_listed_is_removed_but_nothing_before_a_first_desired_state(
    edge: Edge, control: FakeControlPlane, tmp_path: Path
):
    control.want("u1", score(API))
    edge.go()
    (edge.config.state_dir / "desired.json").unlink()
    control.refuse_with = 503
    edge.boot()
    edge.agent.reconcile()
    assert names(edge) == {"api": State.RUNNING}, "without a desired state nothing is known to be unwanted"
    control.refuse_with = 0
    control.drop("u1")
    edge.go()
    assert names(edge) == {}


def test_containers_of_others_are_never_touched(edge: Edge, control: FakeControlPlane):
    edge.runtime.pull("r.example/other:1")
    another_device = {labels.DEVICE: "another-device", labels.UID: "u9", labels.ROLE: "service"}
    for name, marks in (("foreign", {}), ("other-device", another_device)):
        edge.runtime.start(edge.runtime.create(ContainerSpec(name, "r.example/other:1", "no", labels=marks)))
    before = edge.runtime.containers()
    edge.go()
    control.want("u1", score(API))
    control.remove("u1")
    edge.go()
    assert edge.runtime.containers() == before


# Preflight -----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P4", "P10")
def test_all_that_is_in_the_way_is_said_at_once_and_nothing_is_done(tmp_path: Path, control: FakeControlPlane):
    host = SimulatedHost(listeners=[Listener("127.0.0.1", 9090, "tcp")], missing=["/srv/gone"])
    edge = Edge(tmp_path, control, host=host)
    edge.runtime.pull("r.example/other:1")
    foreign = ContainerSpec("api", "r.example/other:1", "no", ports=(PortMapping("", 8080, 80, "tcp"),))
    edge.runtime.start(edge.runtime.create(foreign))
    holder = edge.runtime.containers()[0].id[:12]
    faults(edge).fail_pull = ["*web*"]
    control.want(
        "u1",
        score(
            service("api", "r.example/api:1", ports=["8080:80", "127.0.0.1:9090:90"]),
            service("web", "r.example/web:1", volumes=[Volume("/srv/gone", "/data")]),
        ),
    )
    edge.go()
    report = control.last("u1")
    assert report.state is DeploymentState.FAILED
    assert report.message == (
        f"preflight failed: name 'api' is held by container {holder} which Fleet did not create; "
        "port 8080/tcp is held by container 'api'; "
        "port 127.0.0.1:9090/tcp is held by another process of this host; "
        "host path /srv/gone of web does not exist; "
        "image r.example/web:1: manifest unknown (simulated)"
    )
    assert names(edge) == {"api": State.RUNNING}
    assert edge.runtime.image("r.example/api:1") is None, "nothing is downloaded for a change that cannot begin"


@pytest.mark.clause("AGT-1")
def test_a_container_of_a_same_named_deployment_of_another_uid_is_not_ours_to_replace(
    edge: Edge, control: FakeControlPlane
):
    control.want("u1", score(API))
    edge.go()
    control.want("u2", score(API))
    edge.go()
    message = control.last("u2").message
    assert message.startswith("preflight failed: name 'api' is held by container")
    assert message.endswith("of deployment default/analysis-api (uid u1)")
    control.drop("u1")
    edge.go()
    edge.go()
    edge.settle()
    assert control.last("u2").state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-1")
def test_ports_of_a_container_that_is_replaced_are_not_in_its_own_way(tmp_path: Path, control: FakeControlPlane):
    edge = Edge(tmp_path, control, host=SimulatedHost(listeners=[Listener("0.0.0.0", 8080, "tcp")]))  # noqa: S104
    control.want("u1", score(service("api", "r.example/api:1", ports=["8081:80"])))
    edge.go()
    other = edge.agent.reconciler
    assert other.next_due() is not None
    control.want("u1", score(service("api", "r.example/api:1", ports=["8080:80"])), revision=2)
    edge.go()
    assert control.last("u1").message == "preflight failed: port 8080/tcp is held by another process of this host"
    control.want("u1", score(service("api", "r.example/api:2", ports=["8081:80"])), revision=3)
    edge.go()
    edge.settle()
    assert control.last("u1").state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-1")
def test_a_deployment_with_secrets_never_starts_without_them(edge: Edge, control: FakeControlPlane):
    needy = service("api", "r.example/api:1", secret_env=[SecretEnvVar("TOKEN", SecretRef("db", "password"))])
    control.want("u1", score(needy, init=MIGRATE))
    edge.go()
    assert names(edge) == {}
    assert control.last("u1").message == (
        "preflight failed: api needs secret db/password (for TOKEN), which this agent version cannot resolve"
    )


@pytest.mark.case("P9")
def test_an_image_that_cannot_be_pulled_leaves_what_runs(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.go()
    edge.settle()
    faults(edge).fail_pull = ["*api:2"]
    control.want("u1", score(service("api", "r.example/api:2")), revision=2)
    edge.go()
    assert control.last("u1").message == "preflight failed: image r.example/api:2: manifest unknown (simulated)"
    assert names(edge) == {"api": State.RUNNING}


@pytest.mark.case("R8", "P4")
def test_pulls_are_jittered_and_failed_ones_back_off(tmp_path: Path, control: FakeControlPlane):
    clock = ManualClock()
    runtime = CountingRuntime(clock=clock)
    edge = Edge(tmp_path, control, runtime=runtime, clock=clock, pull_jitter_seconds=60, pass_seconds=5)
    runtime.faults.fail_pull = ["*"]
    control.want("u1", score(API))
    edge.go()
    assert runtime.pulls == []
    assert "images are fetched from" in control.last("u1").message
    edge.until(lambda: len(runtime.pulls) == 5, within=600, step=1)
    pauses = [later - earlier for earlier, later in zip(runtime.pulls, runtime.pulls[1:], strict=False)]
    for pause, longest in zip(pauses, (10, 20, 40, 80), strict=True):
        assert longest / 2 <= pause <= longest + 2
    runtime.faults.fail_pull = []
    edge.until(lambda: control.says("u1", "converged"), within=300)


class CountingRuntime(SimulatedRuntime):
    """Remembers when pulls were tried."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=clock)
        self.pulls: list[float] = []
        self._moment = clock

    def pull(self, reference: str):
        self.pulls.append(self._moment.now())
        return super().pull(reference)


# The init container --------------------------------------------------------------------------------------------------


@pytest.mark.clause("AGT-2")
def test_a_failed_init_keeps_services_untouched_and_is_tried_again(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.go()
    edge.settle()
    before = edge.runtime.containers()
    faults(edge).fail_init = ["migrate"]
    control.want("u1", score(service("api", "r.example/api:2"), init=MIGRATE), revision=2)
    edge.go()
    report = control.last("u1")
    assert (report.state, report.revision) == (DeploymentState.FAILED, 2)
    assert report.message == "init container migrate failed with exit code 1: simulated failure of migrate"
    assert [c for c in edge.runtime.containers() if c.name == "api"] == before
    first = next(c.id for c in edge.runtime.containers() if c.name == "migrate")
    edge.until(lambda: _init_id(edge) not in (first, None), within=35)
    faults(edge).fail_init = []
    edge.until(lambda: control.says("u1", "converged"), within=90)


def _init_id(edge: Edge) -> str | None:
    return next((c.id for c in edge.runtime.containers() if c.name == "migrate"), None)


@pytest.mark.clause("AGT-2")
def test_services_wait_for_an_init_that_takes_its_time(edge: Edge, control: FakeControlPlane):
    faults(edge).init_seconds = 3600
    control.want("u1", score(API, init=MIGRATE))
    edge.go()
    edge.until(lambda: edge.clock.now() > 1_796_003_000, within=4000, step=30)
    assert names(edge) == {"migrate": State.RUNNING}
    assert control.last("u1").message == "init container migrate runs since 2026-11-30 00:53:20 UTC"
    edge.until(lambda: control.says("u1", "converged"), within=1000, step=10)


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


# Isolation -----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("AGT-12")
@pytest.mark.case("P7")
def test_a_deployment_that_hangs_holds_up_neither_another_nor_the_heartbeat(tmp_path: Path, control: FakeControlPlane):
    runtime = SimulatedRuntime()
    runtime.faults.hang = ["*stuck*"]
    edge = Edge(
        tmp_path,
        control,
        runtime=runtime,
        workers=ThreadWorkers(),
        settle_seconds=0.1,
        poll_seconds=0.2,
        heartbeat_seconds=0.3,
        pass_seconds=0.3,
    )
    control.want("u1", score(service("stuck", "r.example/stuck:1")), name="stuck")
    control.want("u2", score(API))
    stop = threading.Event()
    thread = threading.Thread(target=edge.engine.run, args=(stop,))
    thread.start()
    try:
        wait_until(lambda: control.says("u2", "converged"), seconds=10, what="the other deployment converges")
        beats = len(control.reports)
        wait_until(lambda: len(control.reports) > beats + 2, seconds=10, what="heartbeats go on")
        assert control.last("u1").state is DeploymentState.PROGRESSING
        assert control.last("u1").message == "images are checked and fetched"
        runtime.faults.hang = []
        runtime.wake()
        wait_until(lambda: control.says("u1", "converged"), seconds=30, what="what hung goes on")
    finally:
        runtime.wake()
        stop.set()
        edge.engine.wake()
        thread.join(10)


@pytest.mark.case("R4")
def test_an_unexpected_error_in_one_deployment_stops_no_other(
    edge: Edge, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch
):
    original = edge.runtime.create

    def create(spec: ContainerSpec) -> str:
        if spec.name == "bad":
            raise ZeroDivisionError("surprise")
        return original(spec)

    monkeypatch.setattr(edge.runtime, "create", create)
    control.want("a", score(service("bad", "r.example/bad:1")), name="bad")
    control.want("b", score(API))
    edge.go()
    assert control.last("a").message == "unexpected error in the agent: ZeroDivisionError: surprise"
    assert names(edge) == {"api": State.RUNNING}


# Hashes --------------------------------------------------------------------------------------------------------------


def test_hashes_in_labels_are_keyed_per_device():
    one, other = Owner("uid", b"1" * 32), Owner("uid", b"2" * 32)
    assert one.keyed_hash(API) == one.keyed_hash(service("api", "r.example/api:1"))
    assert one.keyed_hash(API) != other.keyed_hash(API)
    assert not one.owns({labels.DEVICE: "uid"})
    assert not one.owns({labels.DEVICE: "another", labels.UID: "u"})


def test_enrolment_keeps_the_server_s_own_words(edge: Edge, control: FakeControlPlane):
    with pytest.raises(ControlError, match="answered 403: the enrolment token is expired or used up"):
        enrol(edge.config, "wrong")
    control.credential = "other"
    with pytest.raises(Unauthorised):
        edge.agent.poll()
