"""Somebody asks for the end of a container's log (AGT-16)."""

from __future__ import annotations

import threading

import pytest

from agent.reconcile.reconciler import ThreadWorkers
from agent.runtime.base import ContainerSpec, LogTail, Runtime, RuntimeFailure
from agent.runtime.simulated import SimulatedRuntime
from agent.wire.messages import MAX_LOG_CHARS
from harness.waiting import wait_until
from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API, faults

pytestmark = pytest.mark.clause("AGT-16")

SECRET = {"name": "PASSWORD", "secret": {"name": "db", "key": "password"}}


class Talkative(SimulatedRuntime):
    """Every container has said this; one that ``is_stuck`` cannot be removed."""

    said, is_stuck = "", False

    def remove(self, container_id: str) -> None:
        if self.is_stuck:
            raise RuntimeFailure("it is busy")
        super().remove(container_id)

    def logs(self, container_id: str, lines: int, limit: int) -> LogTail:
        super().logs(container_id, lines, limit)
        return LogTail(self.said)


@pytest.fixture
def running(edge: Edge) -> Edge:
    edge.control.want("u1", score(API))
    edge.go()
    return edge


@pytest.fixture
def guarded(tmp_path, control: FakeControlPlane) -> Edge:
    """A device whose container has a secret, and may say anything."""
    runtime = Talkative()
    edge = Edge(tmp_path / "state", control, runtime=runtime)
    control.secrets["db", "password"] = "correct-horse-battery"
    control.want("u1", score(service("api", "r.example/api:1", secret_env=[SECRET])))
    edge.go()
    return edge


def talk(edge: Edge) -> Talkative:
    assert isinstance(edge.runtime, Talkative)
    return edge.runtime


def ask(edge: Edge, container: str = "api", deployment: str = "u1", request: str = "r1", lines: int = 100) -> None:
    edge.control.want_log(request, deployment, container, lines)
    edge.until(lambda: bool(edge.control.logs), within=60)


def test_the_end_of_the_log_comes_with_the_next_poll(running: Edge):
    passes = len(running.control.reports)
    ask(running)
    (reply,) = running.control.logs
    assert (reply.request, reply.text, reply.problem, reply.is_cut) == ("r1", "simulated start of api", "", False)
    assert len(running.control.reports) - passes <= 1


def test_a_restarted_container_s_last_lines(running: Edge):
    container = running.runtime.containers()[0]
    running.runtime.stop(container.id, 1)
    running.runtime.start(container.id)
    ask(running, lines=2)
    assert running.control.logs[0].text == "simulated end of api\nsimulated start of api"


@pytest.mark.parametrize(("container", "deployment"), [("other", "u1"), ("web", "u1"), ("api", "u2"), ("web", "")])
def test_only_containers_of_that_very_deployment_are_read(running: Edge, container: str, deployment: str):
    running.runtime.pull("r.example/web:1")
    running.runtime.start(running.runtime.create(ContainerSpec("web", "r.example/web:1", "no")))
    ask(running, container, deployment)
    (reply,) = running.control.logs
    assert reply.text == ""
    assert f"container {container}: this device has none of that name for the deployment; " in reply.problem
    assert reply.problem.endswith("it has: api" if deployment == "u1" else "it has: none")


def test_it_is_sent_until_it_is_acknowledged_and_then_never_again(running: Edge):
    running.control.refuse_logs_with = 503
    running.control.want_log("r1", "u1", "api")
    running.until(lambda: running.control.calls.count(("/api/agent/v1/logs", 503)) >= 2)
    running.control.refuse_logs_with = 0
    running.until(lambda: bool(running.control.logs))
    for _ in range(30):
        running.clock.forward(10)
        running.engine.network()
    assert len(running.control.logs) == 1

    running.boot()  # it does not know any more whether that arrived
    running.until(lambda: len(running.control.logs) == 2)
    assert running.control.logs[0] == running.control.logs[1]


@pytest.mark.parametrize("status", [404, 400, 413])
def test_an_answer_that_nobody_waits_for_is_dropped(running: Edge, status: int):
    running.control.refuse_logs_with = status
    running.control.want_log("r1", "u1", "api")
    running.until(lambda: ("/api/agent/v1/logs", status) in running.control.calls)
    for _ in range(10):
        running.clock.forward(60)
        running.engine.network()
    assert running.control.calls.count(("/api/agent/v1/logs", status)) == 1


def test_a_withdrawn_request_is_not_answered(running: Edge):
    running.control.refuse_logs_with = 503
    running.control.want_log("r1", "u1", "api")
    running.until(lambda: ("/api/agent/v1/logs", 503) in running.control.calls)
    running.control.drop("r1")
    running.control.refuse_logs_with = 0
    running.agent.poll()
    running.agent.answer()
    assert not running.agent.logs.has_replies()
    assert running.control.logs == []


def test_no_terminal_of_a_reader_obeys_what_a_container_said(tmp_path, control: FakeControlPlane):
    runtime = Talkative()
    runtime.said = "\x1b[31mred\x1b[0m\r\ntab\there\x1b]0;title\x07\x00\u202e\u2028bad\nlast"
    edge = Edge(tmp_path / "state", control, runtime=runtime)
    control.want("u1", score(API))
    edge.go()
    ask(edge)
    assert control.logs[0].text == "red\ntab\there�]0;title����bad\nlast"


def test_a_large_log_is_cut_at_its_front(tmp_path, control: FakeControlPlane):
    runtime = Talkative()
    runtime.said = f"first\n{'é' * MAX_LOG_CHARS}\n{'😀' * 200_000}\nlast"
    edge = Edge(tmp_path / "state", control, runtime=runtime)
    control.want("u1", score(API))
    edge.go()
    ask(edge)
    (reply,) = control.logs
    assert reply.is_cut
    assert reply.text.endswith("😀\nlast")
    assert 200_000 < len(reply.text) <= MAX_LOG_CHARS
    assert len(reply.text.encode()) <= 900_000


@pytest.mark.clause("AGT-10")
def test_values_of_secrets_stay_on_the_device(guarded: Edge):
    talk(guarded).said = "connecting with correct-horse-battery"
    ask(guarded)
    assert guarded.control.logs[0].text == "connecting with [secret db/password]"


@pytest.mark.clause("AGT-10")
def test_a_value_is_hidden_when_colours_stand_in_the_middle_of_it(guarded: Edge):
    talk(guarded).said = "with correct-\x1b[1mhorse\x1b[0m-battery"
    ask(guarded)
    assert guarded.control.logs[0].text == "with [secret db/password]"


@pytest.mark.clause("AGT-10")
def test_a_former_value_is_hidden_while_the_container_that_has_it_goes_on(guarded: Edge):
    guarded.control.secrets["db", "password"] = "a-new-passphrase"
    talk(guarded).faults.fail_pull = ["*"]
    guarded.control.want("u1", score(service("api", "r.example/api:2", secret_env=[SECRET])), revision=2)
    guarded.go()
    talk(guarded).said = "neither correct-horse-battery nor a-new-passphrase"
    ask(guarded)
    assert guarded.control.logs[0].text == "neither [secret db/password] nor [secret db/password]"


@pytest.mark.clause("AGT-10", "DEP-14")
def test_values_are_hidden_while_containers_are_being_removed(guarded: Edge):
    talk(guarded).said = "still at it with correct-horse-battery"
    talk(guarded).is_stuck = True
    guarded.control.remove("u1")
    guarded.go()
    ask(guarded)
    assert guarded.control.logs[0].text == "still at it with [secret db/password]"
    talk(guarded).is_stuck = False
    guarded.go()
    guarded.go()
    assert not (guarded.state / "secrets.cache").exists()


@pytest.mark.clause("AGT-12")
def test_a_log_driver_that_hangs_holds_up_neither_passes_nor_reports(tmp_path, control: FakeControlPlane):
    edge = Edge(tmp_path / "state", control, workers=ThreadWorkers())
    control.want("u1", score(API))
    edge.go()
    wait_until(lambda: names_of(edge.runtime) == {"api"}, seconds=10, what="the service is there")
    faults(edge).hang = ["api"]
    control.want_log("r1", "u1", "api")
    edge.agent.poll()
    faults(edge).hang = []
    control.want("u2", score(service("web", "r.example/web:1")), name="web")
    edge.go()
    wait_until(lambda: names_of(edge.runtime) == {"api", "web"}, seconds=10, what="the other service is there")
    assert edge.agent.outbox.acknowledged
    assert control.logs == []

    arrived = threading.Event()
    edge.agent.logs.on_reply = arrived.set
    assert isinstance(edge.runtime, SimulatedRuntime)
    edge.runtime.wake()
    assert arrived.wait(10)
    edge.agent.answer()
    assert "container api: the simulated runtime did not answer" in control.logs[0].problem


def names_of(runtime: Runtime) -> set[str]:
    return {container.name for container in runtime.containers()}
