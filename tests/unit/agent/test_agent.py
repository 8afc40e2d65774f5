"""From desired state to containers and back: simulated containers, real HTTP, a clock that the test moves."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from agent.reconcile import labels
from agent.reconcile.reconciler import ThreadWorkers
from agent.runtime.base import ContainerSpec, State
from agent.runtime.simulated import SimulatedRuntime
from agent.wire.messages import DeploymentState
from harness.waiting import wait_until
from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API, MIGRATE, faults, names

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
    edge.until(lambda: edge.clock.now() > 1_796_003_000, within=4000, step=300)
    assert names(edge) == {"migrate": State.RUNNING}
    assert control.last("u1").message == "init container migrate runs since 2026-11-30 00:53:20 UTC"
    edge.until(lambda: control.says("u1", "converged"), within=1000, step=10)


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
