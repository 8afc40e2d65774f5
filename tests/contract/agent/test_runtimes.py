"""What the agent expects of a container runtime: the same tests for real Podman and for the simulated one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from agent.reconcile import labels
from agent.reconcile.plan import is_completed
from agent.runtime.base import (
    Container,
    ContainerSpec,
    ImageUnavailable,
    LogTail,
    Mount,
    Runtime,
    RuntimeFailure,
    RuntimeUnreachable,
    State,
)
from agent.runtime.podman import PodmanRuntime
from agent.runtime.simulated import Faults, SimulatedRuntime
from agent.wire.ports import PortMapping
from harness.waiting import wait_until
from tests.support.podman import Containers

SERVICE = {labels.ROLE: "service"}
INIT = {labels.ROLE: "init"}


@dataclass(frozen=True)
class Bench:
    """A runtime, and images in it that stay up, end well, end badly, or do not exist."""

    runtime: Runtime
    image: Callable[[str], str]
    missing: str
    unreachable: Runtime
    free_port: int

    def run(self, name: str, image: str, **fields: object) -> str:
        reference = self.image(image)
        self.runtime.pull(reference)
        spec = ContainerSpec(name=name, image=reference, restart_policy="no", labels=SERVICE)
        identity = self.runtime.create(replace(spec, **fields))  # type: ignore[arg-type]
        self.runtime.start(identity)
        return identity

    def seen(self, identity: str) -> Container:
        found = self.runtime.inspect(identity)
        assert found is not None
        return found

    def listed(self, identity: str) -> Container:
        return next(c for c in self.runtime.containers() if c.id == identity)

    def ended(self, identity: str) -> Container:
        def gone() -> bool:
            return self.seen(identity).state is State.EXITED

        wait_until(gone, seconds=15, what="the container ends by itself")
        return self.seen(identity)


@pytest.fixture(params=["podman", "simulated"])
def bench(request: pytest.FixtureRequest, free_port: int) -> Iterator[Bench]:
    if request.param == "podman":
        containers: Containers = request.getfixturevalue("containers")
        yield Bench(
            PodmanRuntime(str(containers.podman.socket)),
            containers.image,
            f"{containers.registry.address}/nowhere:1",
            PodmanRuntime("/nowhere/podman.sock"),
            free_port,
        )
    else:
        faults = Faults(fail_pull=["*nowhere*"], fail_init=["*broken*"], exit_services=["*broken*", "*finishing*"])
        gone = SimulatedRuntime(faults=Faults(unreachable=True))
        yield Bench(
            SimulatedRuntime(faults=faults),
            lambda n: f"r/{n}@sha256:{n.encode().hex():0<64}",
            "r/nowhere:1",
            gone,
            free_port,
        )


def test_a_pulled_image_is_known_by_its_digest(bench: Bench):
    reference = bench.image("service")
    image = bench.runtime.pull(reference)
    assert image.digests[0] == reference.partition("@")[2]
    assert bench.runtime.image(reference) == image
    found = bench.runtime.image(image.id)
    assert found is not None
    assert found.id == image.id
    assert bench.runtime.image(bench.missing) is None


@pytest.mark.clause("AGT-15")
def test_an_image_goes_with_all_its_names_but_not_from_under_a_container(bench: Bench):
    image = bench.runtime.pull(bench.image("finishing"))
    listed = next(found for found in bench.runtime.images() if found.id == image.id)
    assert bench.image("finishing") in listed.names
    assert set(image.digests) == set(listed.digests)

    identity = bench.run("one", "finishing")
    with pytest.raises(RuntimeFailure, match="used by a container"):
        bench.runtime.remove_image(image.id)
    bench.ended(identity)
    with pytest.raises(RuntimeFailure, match="used by a container"):
        bench.runtime.remove_image(image.id)
    assert bench.runtime.image(bench.image("finishing")) == image
    bench.runtime.remove(identity)

    bench.runtime.remove_image(image.id)
    assert bench.runtime.image(bench.image("finishing")) is None
    assert image.id not in {found.id for found in bench.runtime.images()}
    bench.runtime.remove_image(image.id)


@pytest.mark.clause("AGT-16")
def test_the_end_of_a_log(bench: Bench):
    identity = bench.run("migrate-broken", "broken", labels=INIT)
    bench.ended(identity)
    whole = bench.runtime.logs(identity, 1, 1000)
    assert (whole.text, whole.is_cut) == (bench.seen(identity).log, False)
    assert bench.runtime.logs(identity, 1, 9) == LogTail(whole.text[-8:], is_cut=True)
    with pytest.raises(RuntimeFailure, match=r"(?i)no container with"):
        bench.runtime.logs("0" * 64, 5, 1000)


@pytest.mark.case("P9")
def test_an_image_that_is_not_there_is_refused_with_its_reference_and_the_registry_s_words(bench: Bench):
    for ask in (bench.runtime.probe, bench.runtime.pull):
        with pytest.raises(ImageUnavailable) as caught:
            ask(bench.missing)
        assert str(caught.value).startswith(f"image {bench.missing}: ")
        assert "manifest unknown" in str(caught.value)
    bench.runtime.probe(bench.image("service"))


def test_a_container_from_created_to_removed(bench: Bench):
    reference = bench.image("service")
    image = bench.runtime.pull(reference)
    port = PortMapping("127.0.0.1", bench.free_port, 80, "tcp")
    marks = {**SERVICE, labels.UID: "u1"}
    identity = bench.runtime.create(ContainerSpec("one", reference, "always", ports=(port,), labels=marks))
    created = bench.listed(identity)
    assert (created.name, created.state, created.image_id) == ("one", State.CREATED, image.id)
    assert created.labels.items() >= marks.items()
    assert created.ports == (port,) == bench.seen(identity).ports
    assert (created.started_at, created.finished_at) == (0.0, 0.0)

    bench.runtime.start(identity)
    bench.runtime.start(identity)
    running = bench.seen(identity)
    assert (running.state, running.restarts, running.health) == (State.RUNNING, 0, "")
    assert abs(running.started_at - time.time()) < 5
    assert abs(bench.listed(identity).started_at - running.started_at) <= 1

    bench.runtime.stop(identity, 5)
    stopped = bench.seen(identity)
    assert stopped.state is State.EXITED
    assert stopped.finished_at >= running.started_at
    bench.runtime.stop(identity, 5)
    bench.runtime.start(identity)
    assert bench.seen(identity).state is State.RUNNING
    bench.runtime.remove(identity)
    assert bench.runtime.inspect(identity) is None
    assert bench.runtime.containers() == []
    bench.runtime.stop(identity, 5)
    bench.runtime.remove(identity)


def test_a_name_is_given_once(bench: Bench):
    bench.run("one", "service")
    with pytest.raises(RuntimeFailure, match="already in use"):
        bench.run("one", "service")


def test_an_init_that_ends_well(bench: Bench):
    ended = bench.ended(bench.run("migrate", "done", labels=INIT))
    assert (ended.exit_code, ended.log) == (0, "")
    assert is_completed(ended)


@pytest.mark.clause("AGT-2")
def test_an_init_that_ends_badly_leaves_code_and_words(bench: Bench):
    ended = bench.ended(bench.run("migrate-broken", "broken", labels=INIT))
    assert ended.exit_code in (1, 3)
    assert ended.log in ("cannot reach the database", "simulated failure of migrate-broken")


def test_an_image_that_is_not_here_cannot_be_run(bench: Bench):
    with pytest.raises(RuntimeFailure, match="image not known"):
        bench.runtime.create(ContainerSpec("one", bench.missing, "no"))


def test_no_runtime_is_an_error_of_its_own(bench: Bench):
    for call in (bench.unreachable.version, bench.unreachable.containers):
        with pytest.raises(RuntimeUnreachable):
            call()


def test_a_mount_and_a_variable_are_accepted(bench: Bench, tmp_path):
    mount = Mount(str(tmp_path), "/data", read_only=True)
    identity = bench.run("one", "service", mounts=(mount,), env={"A": "1\n'2\" --x=$HOME"})
    assert bench.seen(identity).state is State.RUNNING
