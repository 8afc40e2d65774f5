"""Deployments on real Podman, from the first pull to their removal."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.reconcile import labels
from agent.reconcile.reconciler import ThreadWorkers
from agent.runtime.base import State
from agent.wire.manifest import EnvVar, PodmanService, Volume
from agent.wire.messages import DeploymentState
from harness.waiting import wait_until
from tests.integration.agent.conftest import SETTLE_SECONDS, RealEdge
from tests.support.fake_control import FakeControlPlane, score, service
from tests.support.podman import Containers


def migration(containers: Containers) -> PodmanService:
    return service("migrate", containers.image("done"))


@pytest.mark.clause("AGT-2", "AGT-3", "AGT-6")
def test_init_then_services_then_converged(edge: RealEdge, containers: Containers, free_port: int):
    api = service(
        "api",
        containers.image("service"),
        ports=[f"127.0.0.1:{free_port}:8080"],
        env=[EnvVar("MOTTO", "say \"it\"\nand 'mean' $IT --now")],
    )
    report = edge.bring("u1", score(api, init=service("migrate", containers.tag("done"))), revision=2)
    assert report.images == {"api": containers.digests["service"], "migrate": containers.digests["done"]}
    marker, running = edge.container("migrate"), edge.container("api")
    assert (marker.state, marker.exit_code) == (State.EXITED, 0)
    assert marker.finished_at <= running.started_at
    assert time.time() - running.started_at >= SETTLE_SECONDS
    assert (
        marker.labels.items()
        >= {
            labels.DEVICE: edge.control.uid,
            labels.UID: "u1",
            labels.DEPLOYMENT: "default/analysis-api",
            labels.ROLE: "init",
        }.items()
    )
    shown = containers.podman.cli(
        "inspect", "--format", "{{json .Config.Env}} {{.HostConfig.RestartPolicy.Name}}", "api"
    )
    assert r'"MOTTO=say \"it\"\nand ' in shown
    assert shown.strip().endswith("unless-stopped")


@pytest.mark.clause("AGT-3", "AGT-11")
@pytest.mark.case("P3")
def test_an_agent_that_starts_again_adopts_what_runs(edge: RealEdge, containers: Containers):
    edge.bring("u1", score(service("api", containers.image("service")), init=migration(containers)))
    before = [edge.container("migrate"), edge.container("api")]
    edge.boot()
    edge.go()
    assert edge.control.says("u1", "converged"), "said without waiting for the settle time once more"
    assert [edge.container("migrate"), edge.container("api")] == before


@pytest.mark.clause("AGT-3")
def test_a_live_init_is_adopted_by_an_agent_that_starts_again(edge: RealEdge, containers: Containers):
    edge.control.want(
        "u1", score(service("api", containers.image("service")), init=service("migrate", containers.image("slow")))
    )
    edge.go()
    before = edge.container("migrate")
    assert before.state is State.RUNNING
    edge.boot()
    edge.go()
    assert edge.container("migrate") == before
    assert edge.control.last("u1").message.startswith("init container migrate runs since ")
    assert edge.names() == {"migrate"}


@pytest.mark.clause("AGT-2")
def test_a_failed_init_is_retried_and_its_words_are_reported(edge: RealEdge, containers: Containers, tmp_path: Path):
    data = Volume(str(tmp_path), "/data")
    careful = service("migrate", containers.image("careful"), volumes=[data])
    report = edge.bring("u1", score(service("api", containers.image("service")), init=careful), state="failed")
    assert report.message == "init container migrate failed with exit code 1: looked"
    assert edge.names() == {"migrate"}
    first = edge.container("migrate").id
    edge.go(retry=False)
    assert edge.container("migrate").id == first
    (tmp_path / "ready").touch()
    edge.work_until("u1", "converged", retry=True)
    assert edge.container("migrate").id != first


@pytest.mark.clause("AGT-3", "AGT-4")
def test_a_change_reruns_the_init_and_replaces_that_service_only(edge: RealEdge, containers: Containers):
    init = migration(containers)
    api, web = service("api", containers.image("service")), service("web", containers.image("service"))
    edge.bring("u1", score(api, web, init=init))
    before = {name: edge.container(name).id for name in ("migrate", "api", "web")}
    changed = service("web", containers.image("service"), env=[EnvVar("LEVEL", "2")])
    edge.bring("u1", score(api, changed, init=init), revision=2)
    after = {name: edge.container(name).id for name in ("migrate", "api", "web")}
    assert after["api"] == before["api"]
    assert after["web"] != before["web"]
    assert after["migrate"] != before["migrate"]

    edge.bring("u1", score(api), revision=3)
    assert edge.names() == {"api"}
    assert edge.container("api").id == before["api"]


@pytest.mark.clause("DEP-14")
def test_a_removed_deployment_leaves_nothing(edge: RealEdge, containers: Containers):
    edge.bring("u1", score(service("api", containers.image("service")), init=migration(containers)))
    edge.control.remove("u1")
    edge.work_until("u1", "removed")
    assert edge.names() == set()


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P10")
def test_a_foreign_container_is_named_and_never_touched(edge: RealEdge, containers: Containers):
    podman = containers.podman
    podman.cli("pull", "--quiet", containers.image("service"))
    podman.cli("run", "--detach", "--name", "api", containers.image("service"))
    foreign = edge.container("api")
    report = edge.bring("u1", score(service("api", containers.image("service"))), state="failed")
    assert report.message == (
        f"preflight failed: name 'api' is held by container {foreign.id[:12]} which Fleet did not create"
    )
    edge.control.remove("u1")
    edge.work_until("u1", "removed")
    assert edge.container("api") == foreign


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P4", "P8")
def test_ports_held_by_a_process_or_a_container_and_lost_paths_are_said_before_any_pull(
    edge: RealEdge, containers: Containers, free_port: int
):
    containers.podman.cli("rmi", "--all", "--force")
    containers.podman.cli("pull", "--quiet", containers.image("service"))
    with socket.socket() as process, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        process.bind(("127.0.0.1", 0))
        process.listen()
        datagrams.bind(("127.0.0.1", 0))
        tcp, udp = process.getsockname()[1], datagrams.getsockname()[1]
        containers.podman.cli(
            "run", "--detach", "--name", "other", "--publish", f"{free_port}:80", containers.image("service")
        )
        data = score(
            service(
                "api",
                containers.image("stubborn"),
                ports=[f"{tcp}:80", f"{udp}:53/udp", f"127.0.0.1:{free_port}:90"],
                volumes=[Volume("/nowhere/at/all", "/data")],
            ),
            service("web", f"{containers.registry.address}/nowhere:1"),
        )
        report = edge.bring("u1", data, state="failed")
    assert report.message.startswith("preflight failed: ")
    problems = report.message.removeprefix("preflight failed: ").split("; ")
    assert problems[:4] == [
        f"port {tcp}/tcp is held by another process of this host",
        f"port {udp}/udp is held by another process of this host",
        f"port 127.0.0.1:{free_port}/tcp is held by container 'other'",
        "host path /nowhere/at/all of api does not exist",
    ]
    assert problems[4].startswith(f"image {containers.registry.address}/nowhere:1: ")
    assert "manifest unknown" in problems[4]
    assert edge.runtime.image(containers.image("stubborn")) is None


@pytest.mark.case("P9")
def test_what_runs_goes_on_when_the_new_image_cannot_be_had(edge: RealEdge, containers: Containers):
    edge.bring("u1", score(service("api", containers.image("service"))))
    before = edge.container("api")
    gone = f"{containers.registry.address}/service@sha256:{'1' * 64}"
    report = edge.bring("u1", score(service("api", gone)), revision=2, state="failed")
    assert report.message.startswith(f"preflight failed: image {gone}: ")
    assert "manifest unknown" in report.message
    assert edge.container("api") == before


def test_a_pin_decides_what_a_tag_runs(edge: RealEdge, containers: Containers):
    tag = containers.tag("service")
    edge.bring("u1", score(service("api", tag)))
    first = edge.container("api").id
    pin = {tag: f"{containers.registry.address}/service@{containers.digests['service']}"}
    edge.control.want("u1", score(service("api", tag)), revision=2, images=pin)
    edge.work_until("u1", "converged", revision=2)
    assert edge.container("api").id == first, "it is the digest that runs already"
    pin = {tag: containers.digests["stubborn"]}
    edge.control.want("u1", score(service("api", tag)), revision=3, images=pin)
    report = edge.work_until("u1", "failed", revision=3)
    assert containers.digests["stubborn"] in report.message, "the registry has no such digest under this name"
    assert edge.container("api").id == first


@pytest.mark.clause("AGT-7")
@pytest.mark.case("P2")
@pytest.mark.parametrize(
    "tamper",
    [
        ["stop", "--time", "0", "api"],
        ["rm", "--force", "--time", "0", "api"],
        pytest.param(["pause", "api"], marks=pytest.mark.root("Podman pauses by cgroups, which it makes as root only")),
        ["rename", "api", "x"],
    ],
)
def test_drift_is_repaired_at_the_next_pass(edge: RealEdge, containers: Containers, tamper: list[str]):
    edge.bring("u1", score(service("api", containers.image("service"))))
    containers.podman.cli(*tamper)
    edge.go(retry=True)
    assert edge.names() == {"api"}
    assert edge.container("api").state is State.RUNNING
    edge.work_until("u1", "converged")


@pytest.mark.clause("AGT-6")
@pytest.mark.case("P5", "P11")
@pytest.mark.parametrize(("image", "code", "words"), [("crashing", 4, "out of luck"), ("finishing", 0, "")])
def test_a_service_that_ends_again_and_again_is_failed_with_code_and_words(
    edge: RealEdge, containers: Containers, image: str, code: int, words: str
):
    edge.control.want("u1", score(service("api", containers.image(image), restart_policy="always")))
    said = set()
    deadline = time.monotonic() + 8
    while time.monotonic() < deadline:
        edge.go()
        said.add(edge.control.last("u1").state)
    assert said <= {DeploymentState.PROGRESSING, DeploymentState.FAILED}
    message = edge.control.last("u1").message
    assert edge.control.says("u1", "failed")
    assert f"code {code}" in message
    assert words in message


@pytest.mark.clause("AGT-12")
@pytest.mark.case("P7", "P9")
def test_a_registry_that_never_answers_holds_up_nothing_else(
    make_edge: Callable[..., RealEdge], containers: Containers, control: FakeControlPlane
):
    edge = make_edge(containers, workers=ThreadWorkers(), poll_seconds=0.3, heartbeat_seconds=0.5, pass_seconds=1)
    stop = threading.Event()
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        control.want("u1", score(service("stuck", f"127.0.0.1:{mute.getsockname()[1]}/stuck:1")), name="stuck")
        control.want("u2", score(service("api", containers.image("service"))))
        thread = threading.Thread(target=edge.engine.run, args=(stop,))
        thread.start()
        try:
            wait_until(lambda: control.says("u2", "converged"), seconds=30, what="the other deployment converges")
            beats = len(control.reports)
            wait_until(lambda: len(control.reports) > beats + 3, seconds=10, what="heartbeats go on")
            assert control.last("u1").state is DeploymentState.PROGRESSING
            containers.podman.cli("rm", "--force", "--time=0", "api")
            wait_until(lambda: edge.names() == {"api"}, seconds=10, what="drift elsewhere is repaired")
        finally:
            stop.set()
            edge.engine.wake()
            thread.join(10)


@pytest.mark.clause("AGT-6")
def test_a_service_that_may_end_is_completed_once(edge: RealEdge, containers: Containers):
    edge.bring("u1", score(service("job", containers.image("done"), restart_policy="on-failure:3")))
    before = edge.container("job")
    assert (before.state, before.exit_code) == (State.EXITED, 0)
    edge.go(retry=True)
    edge.boot()
    edge.go(retry=True)
    assert edge.container("job") == before
    assert edge.control.says("u1", "converged")


@pytest.mark.clause("AGT-6")
def test_converged_is_withdrawn_and_given_again(edge: RealEdge, containers: Containers):
    edge.bring("u1", score(service("api", containers.image("service"), restart_policy="always")))
    pid = int(containers.podman.cli("inspect", "--format", "{{.State.Pid}}", "api"))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: edge.container("api").restarts == 1, seconds=10, what="Podman restarts it")
    edge.go()
    report = edge.control.last("u1")
    assert report.state is DeploymentState.FAILED
    assert report.message.startswith("service api restarted once, last exit code 137")
    edge.work_until("u1", "converged")


@pytest.mark.clause("AGT-6")
def test_a_health_check_has_to_pass(edge: RealEdge, containers: Containers):
    healthy = f"{containers.registry.address}/healthy:1"
    containers.podman.build(healthy, command=["sh", "-c", "sleep 3600"], health=["test", "-e", "/ready"])
    edge.control.want("u1", score(service("api", healthy)))
    edge.go()
    time.sleep(SETTLE_SECONDS)
    edge.go()
    assert edge.control.last("u1").message == "the health check of service api has not passed yet"
    containers.podman.cli("exec", "api", "touch", "/ready")
    containers.podman.cli("healthcheck", "run", "api")
    edge.work_until("u1", "converged")


@pytest.mark.clause("AGT-5")
def test_a_stubborn_container_is_asked_then_killed_and_removed(
    edge: RealEdge, containers: Containers, monkeypatch: pytest.MonkeyPatch
):
    asked: list[int] = []
    stop = edge.runtime.stop

    def short(container_id: str, seconds: int) -> None:
        asked.append(seconds)
        stop(container_id, 1)

    monkeypatch.setattr(edge.runtime, "stop", short)
    edge.bring("u1", score(service("api", containers.image("stubborn"))))
    edge.control.remove("u1")
    edge.work_until("u1", "removed")
    assert asked == [30]
    assert edge.names() == set()


def test_at_rest_all_deployments_are_looked_at_with_one_call(
    edge: RealEdge, containers: Containers, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch
):
    init = migration(containers)
    for number in range(3):
        data = score(service(f"api-{number}", containers.image("service")))
        control.want(f"u{number}", data, name=f"app-{number}")
    control.want("u3", score(service("api", containers.image("service")), init=init))
    for number in range(4):
        edge.work_until(f"u{number}", "converged")
    calls: list[str] = []
    original = edge.runtime._call  # type: ignore[attr-defined]

    def counted(method: str, path: str, **options: object):
        calls.append(f"{method} {path}")
        return original(method, path, **options)

    monkeypatch.setattr(edge.runtime, "_call", counted)

    def look() -> list[str]:
        calls.clear()
        edge.go(retry=True)
        return calls

    one_call = ["GET /containers/json"]
    wait_until(lambda: look() == one_call, seconds=10, what=f"at rest a pass is one call, not {calls}", every=0.5)
