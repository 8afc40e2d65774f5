"""What must hold before anything is changed, as the control plane hears of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.app import enrol
from agent.control import ControlError, Unauthorised
from agent.reconcile import labels
from agent.reconcile.labels import Owner
from agent.runtime.base import ContainerSpec, Listener, Login, State
from agent.runtime.simulated import SimulatedHost, SimulatedRuntime
from agent.wire.manifest import Volume
from agent.wire.messages import DeploymentState
from agent.wire.ports import PortMapping
from tests.support.devices import Edge, ManualClock
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API, faults, names

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


@pytest.mark.clause("AGT-1", "AGT-11")
def test_without_root_low_ports_are_refused_and_one_says_it_for_a_range(tmp_path: Path, control: FakeControlPlane):
    class Rootless(SimulatedRuntime):
        def lowest_port(self) -> int:
            return 1024

    edge = Edge(tmp_path, control, runtime=Rootless(), clock=ManualClock())
    control.want("u1", score(service("web", "r.example/web:1", ports=["1000-1100:1000-1100", "80:8080", "1200:1"])))
    edge.go()
    assert control.last("u1").message == (
        "preflight failed: port 80/tcp of web is below 1024, which Podman may not publish without root "
        "(sysctl net.ipv4.ip_unprivileged_port_start=80 allows it)"
    )
    assert names(edge) == {}


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

    def pull(self, reference: str, login: Login | None = None):
        self.pulls.append(self._moment.now())
        return super().pull(reference, login)


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
