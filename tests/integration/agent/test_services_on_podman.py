"""Services on real Podman: what replaces one, how one ends, restarts or ails, and what a reboot makes of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent.runtime.base import RuntimeFailure, State
from agent.wire.manifest import EnvVar, PodmanService, SecretEnvVar, SecretRef, Volume
from harness.waiting import wait_until
from tests.integration.agent.conftest import RealEdge
from tests.support.fake_control import score, service
from tests.support.podman import Containers

SETTLE_SECONDS = 0.3


@pytest.fixture
def quick(make_edge: Callable[..., RealEdge], containers: Containers) -> RealEdge:
    """With a settle time that tests may wait for."""
    return make_edge(containers, settle_seconds=SETTLE_SECONDS)


def changes(edge: RealEdge, containers: Containers, folder: Path, port: int) -> dict[str, dict[str, object]]:
    """One after the other, each differs from the one before in a single field of the service or of what it holds."""
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    edge.put_secret("login", "one", "1")
    edge.put_secret("login", "two", "2")

    def secret(name: str, key: str) -> list[SecretEnvVar]:
        return [SecretEnvVar(name, SecretRef("login", key))]

    def volume(host: str, inner: str, *, read_only: bool) -> list[Volume]:
        return [Volume(str(folder / host), inner, read_only)]

    return {
        "image": {"image": containers.image("stubborn")},
        "image (back)": {"image": containers.image("service")},
        "ports": {"ports": [f"127.0.0.1:{port}:80"]},
        "ports (container)": {"ports": [f"127.0.0.1:{port}:81"]},
        "ports (protocol)": {"ports": [f"127.0.0.1:{port}:81/udp"]},
        "env": {"env": [EnvVar("LEVEL", "1")]},
        "env.name": {"env": [EnvVar("DEPTH", "1")]},
        "env.value": {"env": [EnvVar("DEPTH", "1\n")]},
        "secret_env": {"secret_env": secret("PASSWORD", "one")},
        "secret_env.name": {"secret_env": secret("TOKEN", "one")},
        "secret_env.secret": {"secret_env": secret("TOKEN", "two")},
        "volumes": {"volumes": volume("a", "/data", read_only=False)},
        "volumes.host_path": {"volumes": volume("b", "/data", read_only=False)},
        "volumes.container_path": {"volumes": volume("b", "/srv", read_only=False)},
        "volumes.read_only": {"volumes": volume("b", "/srv", read_only=True)},
        "restart_policy": {"restart_policy": "always"},
        "restart_policy (tries)": {"restart_policy": "on-failure:3"},
        "name": {"name": "site"},
    }


def fields_of_a_service() -> set[str]:
    """Also those of what it holds; a new field has to come into the table above."""
    inner = {"env": EnvVar, "secret_env": SecretEnvVar, "volumes": Volume}
    found = {field.name for field in msgspec.structs.fields(PodmanService)}
    return found | {f"{name}.{field.name}" for name, type_ in inner.items() for field in msgspec.structs.fields(type_)}


@pytest.mark.clause("AGT-4", "DEP-3")
def test_a_change_of_any_single_field_replaces_that_service_only(
    quick: RealEdge, containers: Containers, tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
):
    table = changes(quick, containers, tmp_path, free_port)
    assert {name.partition(" ")[0] for name in table} == fields_of_a_service()
    stop = quick.runtime.stop
    monkeypatch.setattr(quick.runtime, "stop", lambda container_id, seconds: stop(container_id, 1))
    api, web = service("api", containers.image("service")), service("web", containers.image("service"))
    quick.bring("u1", score(api, web))
    kept = quick.container("api")
    for number, (field, change) in enumerate(table.items()):
        before = quick.container(web.name).id
        web = msgspec.structs.replace(web, **change)
        quick.bring("u1", score(api, web), revision=number + 2)
        assert quick.container(web.name).id != before, f"{field} changed nothing"
        assert quick.container("api") == kept, f"{field} of web touched api"
        assert quick.names() == {"api", web.name}, field


@pytest.mark.clause("AGT-4")
def test_the_same_service_written_otherwise_is_the_same(quick: RealEdge, containers: Containers):
    quick.bring("u1", score(service("api", containers.image("service"))))
    before = quick.container("api")
    written_out = service("api", containers.image("service"), env=[], ports=[], restart_policy="unless-stopped")
    quick.bring("u1", score(service("new", containers.image("service")), written_out), revision=2)
    assert quick.container("api") == before


@pytest.mark.clause("AGT-6")
@pytest.mark.case("P5", "P11")
def test_a_crash_that_nobody_saw_is_said_at_the_next_look(quick: RealEdge, containers: Containers):
    quick.bring("u1", score(service("api", containers.image("service"), restart_policy="always")))
    os.kill(int(containers.podman.cli("inspect", "--format", "{{.State.Pid}}", "api")), signal.SIGKILL)
    wait_until(lambda: quick.container("api").restarts == 1, seconds=10, what="Podman restarts it")
    wait_until(
        lambda: time.time() > quick.container("api").started_at + SETTLE_SECONDS, seconds=5, what="it is up long"
    )
    quick.go()
    assert quick.control.says("u1", "failed")
    assert quick.control.last("u1").message.startswith("service api restarted once, last exit code 137")
    quick.work_until("u1", "converged")


@pytest.mark.clause("AGT-6")
@pytest.mark.parametrize("policy", ["no", "on-failure:1"])
def test_a_service_that_ends_badly_is_failed_with_its_words_and_started_again_by_the_next_pass(
    quick: RealEdge, containers: Containers, policy: str
):
    quick.control.want("u1", score(service("job", containers.image("broken"), restart_policy=policy)))
    quick.work_until("u1", "failed")
    wait_until(lambda: quick.container("job").state is State.EXITED, seconds=10, what="it has ended")
    quick.go(retry=False)
    report = quick.control.last("u1")
    assert report.message.startswith("service job exited with code 3: cannot reach the database")
    ended = quick.container("job")
    quick.go(retry=False)
    assert quick.container("job").started_at == ended.started_at, "not before the next pass"
    quick.go(retry=True)
    assert quick.container("job").started_at > ended.started_at


@pytest.mark.clause("AGT-6")
def test_an_unhealthy_service_is_not_converged(quick: RealEdge, containers: Containers):
    """Systemd's timers run health checks; on a host without it somebody has to ask for each."""
    ailing = f"{containers.registry.address}/ailing:1"
    containers.podman.build(ailing, command=["sh", "-c", "sleep 3600"], health=["test", "-e", "/ready"])
    quick.control.want("u1", score(service("api", ailing)))
    quick.go()

    def is_unhealthy() -> bool:
        with pytest.raises(RuntimeError):
            containers.podman.cli("healthcheck", "run", "api")
        return quick.container("api").health == "unhealthy"

    wait_until(is_unhealthy, seconds=30, what="three failures make it unhealthy")
    report = quick.work_until("u1", "failed")
    assert report.message == "service api is unhealthy"
    containers.podman.cli("exec", "api", "touch", "/ready")
    containers.podman.cli("healthcheck", "run", "api")
    quick.work_until("u1", "converged")


@pytest.mark.clause("AGT-6", "AGT-7")
def test_after_a_reboot_every_policy_does_what_it_says(make_edge: Callable[..., RealEdge], own_containers: Containers):
    edge = make_edge(own_containers, settle_seconds=SETTLE_SECONDS)
    stays, ends = own_containers.image("service"), own_containers.image("done")
    policies = ("no", "on-failure", "always", "unless-stopped")
    data = score(
        *(service(f"stays-{policy}", stays, restart_policy=policy) for policy in policies),
        *(service(f"ends-{policy}", ends, restart_policy=policy) for policy in policies[:2]),
    )
    edge.bring("u1", data)
    ended = {name: edge.container(name) for name in edge.names() if name.startswith("ends-")}
    ids = {name: edge.container(name).id for name in edge.names()}
    own_containers.podman.cli("stop", "--time", "0", "stays-unless-stopped")
    own_containers.podman.lose_power()
    own_containers.podman.start()
    assert not any(c.state is State.RUNNING for c in edge.runtime.containers()), "nobody else starts them"
    edge.boot()
    edge.work_until("u1", "converged")
    assert {name: edge.container(name).id for name in edge.names()} == ids
    assert {name: edge.container(name) for name in ended} == ended, "what had completed did not run again"
    assert all(edge.container(f"stays-{policy}").state is State.RUNNING for policy in policies)


@pytest.mark.clause("AGT-5")
@pytest.mark.case("P6")
def test_a_stop_that_podman_does_not_finish_ends_in_force(
    quick: RealEdge, containers: Containers, monkeypatch: pytest.MonkeyPatch
):
    """Asked with 30 s; when even then no answer comes, the container goes by force and the rest goes on."""
    asked: list[str] = []
    call = quick.runtime._call  # type: ignore[attr-defined]

    def watched(method: str, path: str, **options: object):
        asked.append(f"{method} {path.rpartition('/')[2]} {options.get('params', '')}")
        if path.endswith("/stop"):
            raise RuntimeFailure("Podman did not answer")
        return call(method, path, **options)

    quick.bring("u1", score(service("api", containers.image("stubborn")), service("web", containers.image("service"))))
    before, kept = quick.container("api").id, quick.container("web")
    monkeypatch.setattr(quick.runtime, "_call", watched)
    changed = service("api", containers.image("stubborn"), env=[EnvVar("LEVEL", "2")])
    quick.bring("u1", score(changed, service("web", containers.image("service"))), revision=2)
    assert quick.container("web") == kept
    assert before not in {c.id for c in quick.runtime.containers()}
    assert "POST stop {'timeout': '30'}" in asked
    assert asked.index("POST stop {'timeout': '30'}") < asked.index(f"DELETE {before} {{'force': 'true', 'v': 'true'}}")


@pytest.mark.clause("AGT-7")
def test_a_container_that_somebody_made_again_is_replaced(quick: RealEdge, containers: Containers):
    """Labels and all, as ``podman run`` with copied arguments does it; what is in it is not what is wanted."""
    quick.bring("u1", score(service("api", containers.image("service"))))
    marks = quick.container("api").labels
    podman = containers.podman
    podman.cli("rm", "--force", "--time", "0", "api")
    copied = [part for key, value in marks.items() for part in ("--label", f"{key}={value}")]
    podman.cli("run", "--detach", "--name", "api", "--env", "BY=hand", *copied, containers.image("service"))
    by_hand = quick.container("api").id
    quick.go(retry=True)
    assert quick.container("api").id != by_hand
    quick.work_until("u1", "converged")
