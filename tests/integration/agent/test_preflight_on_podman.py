"""What a pass finds out on real Podman before it changes anything (AGT-1)."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest

from agent.runtime.base import State
from agent.wire.manifest import EnvVar, Volume
from tests.integration.agent.conftest import RealEdge
from tests.support.fake_control import FakeControlPlane, score, service
from tests.support.podman import Containers

PREFIX = "preflight failed: "


def problems(edge: RealEdge, uid: str = "u1") -> list[str]:
    edge.go()
    message = edge.control.last(uid).message
    assert message.startswith(PREFIX), message
    return message.removeprefix(PREFIX).split("; ")


@contextlib.contextmanager
def held(kind: socket.SocketKind, address: str, family: socket.AddressFamily = socket.AF_INET) -> Iterator[int]:
    """A plain process (this one) holds a port."""
    with socket.socket(family, kind) as holder:
        if family is socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        holder.bind((address, 0))
        if kind is socket.SOCK_STREAM:
            holder.listen()
        yield int(holder.getsockname()[1])


def is_held(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.clause("AGT-1")
def test_the_same_name_in_another_namespace_is_another_owner(
    edge: RealEdge, containers: Containers, control: FakeControlPlane
):
    edge.bring("u1", score(service("api", containers.image("service"))))
    before = edge.container("api")
    control.want("u2", score(service("api", containers.image("service"))), name="other")
    assert problems(edge, "u2") == [
        f"name 'api' is held by container {before.id[:12]} of deployment default/analysis-api (uid u1)"
    ]
    assert control.says("u1", "converged")
    control.remove("u2")
    edge.work_until("u2", "removed")
    assert edge.container("api") == before


@pytest.mark.clause("AGT-1", "DEP-14")
def test_a_deployment_that_was_made_again_begins_when_the_old_one_is_gone(
    edge: RealEdge, containers: Containers, control: FakeControlPlane
):
    edge.bring("u1", score(service("api", containers.image("service"))))
    before = edge.container("api")
    control.want("u2", score(service("api", containers.image("service"))))
    assert problems(edge, "u2") == [
        f"name 'api' is held by container {before.id[:12]} of deployment default/analysis-api (uid u1)"
    ]
    control.remove("u1")
    edge.work_until("u2", "converged", retry=True)
    assert edge.container("api").id != before.id
    assert control.says("u1", "removed")


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P4")
def test_each_way_in_which_a_process_can_hold_a_port(edge: RealEdge, containers: Containers, control: FakeControlPlane):
    tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
    with (
        held(tcp, "0.0.0.0") as everywhere,  # noqa: S104  (the point of it)
        held(tcp, "127.0.0.1") as local,
        held(udp, "127.0.0.1") as datagrams,
        held(tcp, "::1", socket.AF_INET6) as six,
    ):
        wanted = {
            f"127.0.0.1:{everywhere}:80": f"port 127.0.0.1:{everywhere}/tcp",
            f"{local}:80": f"port {local}/tcp",
            f"{datagrams}:53/udp": f"port {datagrams}/udp",
            f"[::1]:{six}:80": f"port ::1:{six}/tcp",
            f"{local - 1}-{local + 1}:8000-8002": f"port {local}/tcp",
        }
        for number, (port, said) in enumerate(wanted.items()):
            control.want("u1", score(service("api", containers.image("service"), ports=[port])), revision=number + 1)
            assert problems(edge) == [f"{said} is held by another process of this host"], port
        assert edge.names() == set()
        free = [f"{everywhere}:53/udp", f"{datagrams}:53/tcp", f"127.0.0.2:{local}:80"]
        edge.bring("u1", score(service("api", containers.image("service"), ports=free)), revision=9)


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P4")
def test_ports_of_another_container_are_free_on_other_addresses_and_protocols(
    edge: RealEdge, containers: Containers, control: FakeControlPlane, free_port: int
):
    image = containers.image("service")
    containers.podman.cli("pull", "--quiet", image)
    published = f"127.0.0.1:{free_port}-{free_port + 1}:8000-8001/udp"
    containers.podman.cli("run", "--detach", "--name", "other", "--publish", published, image)
    control.want("u1", score(service("api", image, ports=[f"{free_port + 1}:53/udp"])))
    assert problems(edge) == [f"port {free_port + 1}/udp is held by container 'other'"]
    free = [f"127.0.0.2:{free_port}:53/udp", f"127.0.0.1:{free_port}:80/tcp"]
    edge.bring("u1", score(service("api", image, ports=free)), revision=2)


@pytest.mark.clause("AGT-1", "AGT-4")
def test_a_port_that_moves_between_services_of_a_deployment_is_free(
    edge: RealEdge, containers: Containers, free_port: int
):
    image, port = containers.image("service"), f"127.0.0.1:{free_port}:80"
    edge.bring("u1", score(service("api", image, ports=[port]), service("web", image)))
    edge.bring("u1", score(service("api", image), service("web", image, ports=[port])), revision=2)
    edge.bring("u1", score(service("new", image, ports=[port])), revision=3)
    assert edge.names() == {"new"}


@pytest.mark.clause("AGT-1", "AGT-11")
def test_a_low_port_is_published_as_root_and_refused_without(edge: RealEdge, containers: Containers):
    low = next(port for port in range(1023, 600, -1) if not is_held(port))
    data = score(service("api", containers.image("service"), ports=[f"127.0.0.1:{low}:80"]))
    if os.geteuid() == 0:
        edge.bring("u1", data)
        return
    edge.control.want("u1", data)
    assert problems(edge) == [
        f"port 127.0.0.1:{low}/tcp of api is below 1024, which Podman may not publish without root "
        f"(sysctl net.ipv4.ip_unprivileged_port_start={low} allows it)"
    ]
    assert edge.names() == set()


@pytest.mark.clause("AGT-1")
def test_an_image_that_is_here_needs_no_registry(edge: RealEdge, containers: Containers, control: FakeControlPlane):
    edge.bring("u1", score(service("api", containers.tag("service"))))
    elsewhere = f"{containers.registry.address}/never-fetched:1"
    containers.registry.stop()
    try:
        for image in (containers.tag("service"), containers.image("service")):
            control.want("u1", score(service("api", image, env=[EnvVar("IMAGE", image)])), revision=2)
            edge.work_until("u1", "converged", revision=2)
        before = edge.container("api")
        control.want("u1", score(service("api", elsewhere)), revision=3)
        (problem,) = problems(edge)
    finally:
        containers.registry.start()
    assert problem.startswith(f"image {elsewhere}: ")
    assert "connection refused" in problem
    assert edge.container("api") == before


@pytest.mark.clause("AGT-1")
def test_the_digest_of_a_manifest_list_is_as_good_as_an_images_own(edge: RealEdge, containers: Containers):
    podman, repository = containers.podman, f"{containers.registry.address}/listed"
    podman.cli("pull", "--quiet", containers.image("service"))
    podman.cli("manifest", "create", f"{repository}:1")
    podman.cli("manifest", "add", f"{repository}:1", f"docker://{containers.image('service')}")
    digest_file = podman.folder / "list-digest"
    podman.cli(
        "manifest", "push", "--all", "--digestfile", str(digest_file), f"{repository}:1", f"docker://{repository}:1"
    )
    podman.cli("manifest", "rm", f"{repository}:1")
    podman.cli("rmi", "--all", "--force")
    digest = digest_file.read_text().strip()
    assert digest != containers.digests["service"]
    report = edge.bring("u1", score(service("api", f"{repository}@{digest}")))
    assert report.images == {"api": digest}


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P4", "P8", "P9", "P10")
def test_everything_that_is_wrong_is_said_at_once_and_nothing_was_touched(
    edge: RealEdge, containers: Containers, control: FakeControlPlane, free_port: int
):
    image = containers.image("service")
    edge.bring("u1", score(service("api", image), init=service("migrate", containers.image("done"))))
    before = {name: edge.container(name) for name in edge.names()}
    containers.podman.cli("run", "--detach", "--name", "web", "--publish", f"{free_port}:80", image)
    lost = f"{containers.registry.address}/service@sha256:{'1' * 64}"
    data = score(
        service("api", image, ports=[f"{free_port}:80"]),
        service("web", lost, volumes=[Volume("/nowhere/at/all", "/data")]),
        init=service("migrate", containers.image("done"), volumes=[Volume("/nor/here", "/data")]),
    )
    control.want("u1", data, revision=2)
    found = problems(edge)
    assert found[:4] == [
        "host path /nor/here of migrate does not exist",
        f"port {free_port}/tcp is held by container 'web'",
        f"name 'web' is held by container {edge.container('web').id[:12]} which Fleet did not create",
        "host path /nowhere/at/all of web does not exist",
    ]
    assert found[4].startswith(f"image {lost}: ")
    assert {name: edge.container(name) for name in before} == before
    assert edge.container("web").state is State.RUNNING
