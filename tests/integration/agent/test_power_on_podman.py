"""What a power cut or a killed monitor leaves behind on real Podman, and what the agent makes of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from agent.runtime.base import RuntimeUnreachable, State
from agent.wire.manifest import SecretEnvVar, SecretRef
from harness.waiting import wait_until
from tests.integration.agent.conftest import RealEdge
from tests.support.fake_control import score, service
from tests.support.podman import Containers


@pytest.fixture
def edge(make_edge: Callable[..., RealEdge], own_containers: Containers) -> RealEdge:
    return make_edge(own_containers)


@pytest.mark.clause("AGT-3")
@pytest.mark.case("P2", "P5")
def test_a_power_loss_during_the_init_is_not_its_completion(edge: RealEdge, own_containers: Containers):
    edge.control.want(
        "u1",
        score(service("api", own_containers.image("service")), init=service("migrate", own_containers.image("slow"))),
    )
    edge.go()
    interrupted = edge.container("migrate")
    assert interrupted.state is State.RUNNING
    own_containers.podman.lose_power()
    own_containers.podman.start()
    left = edge.container("migrate")
    assert (left.state, left.exit_code) == (State.CREATED, 0), "what looks like success on this Podman"
    edge.boot()
    edge.go()
    again = edge.container("migrate")
    assert again.id != interrupted.id
    assert again.state is State.RUNNING
    assert edge.names() == {"migrate"}, "no service before the init has come to its end"


@pytest.mark.clause("AGT-3", "AGT-7", "AGT-8", "AGT-10")
@pytest.mark.case("P2")
def test_after_a_power_loss_services_start_again_and_a_completed_init_does_not(
    edge: RealEdge, own_containers: Containers
):
    needs = [SecretEnvVar("PASSWORD", SecretRef("db", "password"))]
    edge.control.secrets["db", "password"] = "hunter2"
    api = service("api", own_containers.image("service"), secret_env=needs)
    edge.bring("u1", score(api, init=service("migrate", own_containers.image("done"))))
    marker, before = edge.container("migrate"), edge.container("api")
    own_containers.podman.lose_power()
    own_containers.podman.start()
    edge.control.refuse_with = 503
    edge.boot()
    edge.agent.reconcile()
    assert edge.container("migrate") == marker
    assert edge.container("api").state is State.RUNNING
    assert edge.container("api").id == before.id
    edge.runtime.remove(before.id)
    edge.agent.reconcile()
    assert own_containers.environment("api")["PASSWORD"] == "hunter2", "made anew, with what was kept"
    assert edge.container("migrate") == marker
    edge.control.refuse_with = 0
    edge.work_until("u1", "converged")


@pytest.mark.clause("AGT-3")
@pytest.mark.case("P6")
def test_an_init_whose_monitor_was_killed_is_not_waited_for_for_ever(edge: RealEdge, own_containers: Containers):
    edge.control.want(
        "u1",
        score(service("api", own_containers.image("service")), init=service("migrate", own_containers.image("slow"))),
    )
    edge.go()
    before = edge.container("migrate")
    pids = own_containers.podman.cli("inspect", "--format", "{{.State.ConmonPid}} {{.State.Pid}}", "migrate").split()
    for pid in map(int, pids):
        os.kill(pid, signal.SIGKILL)
    listed = own_containers.podman.cli("inspect", "--format", "{{.State.Status}}", "migrate").strip()
    assert listed == "running", "what this Podman says of a container without a process"

    def replaced() -> bool:
        edge.go()
        return edge.container("migrate").id != before.id

    wait_until(replaced, seconds=30, what="it runs again", every=0.5)
    assert edge.container("migrate").state is State.RUNNING
    assert edge.names() == {"migrate"}


def interrupted(call: Callable[[], None]) -> None:
    """A call whose service goes away."""
    with pytest.raises(RuntimeUnreachable):
        call()


@pytest.mark.clause("AGT-5", "AGT-12")
@pytest.mark.case("P6", "P7")
def test_a_container_that_hangs_in_stopping_is_replaced_after_a_limit_and_holds_up_nobody(
    edge: RealEdge, own_containers: Containers, monkeypatch: pytest.MonkeyPatch
):
    """Podman and its monitor were killed in the middle of a stop: nobody will ever finish it."""
    monkeypatch.setattr("agent.reconcile.plan.STUCK_SECONDS", 1.0)
    edge.bring("u1", score(service("api", own_containers.image("slow"))))
    before, podman = edge.container("api").id, own_containers.podman
    pids = podman.cli("inspect", "--format", "{{.State.ConmonPid}} {{.State.Pid}}", "api").split()
    stop = threading.Thread(target=interrupted, args=(lambda: edge.runtime.stop(before, 600),))
    stop.start()
    wait_until(lambda: edge.container("api").state is State.STOPPING, seconds=10, what="it is stopping")
    podman.stop_service()
    stop.join(10)
    for pid in map(int, pids):
        os.kill(pid, signal.SIGKILL)
    podman.start()
    assert edge.container("api").state is State.STOPPING, "what this Podman says for ever"
    edge.boot()
    edge.control.want("u2", score(service("web", own_containers.image("service"))), name="other")
    edge.go()
    assert edge.control.last("u1").message == "container api is stopping"
    edge.work_until("u2", "converged")
    edge.work_until("u1", "converged")
    assert edge.container("api").id != before
