"""Entries in Podman's storage that no container stands behind, as a power loss leaves them: names that are taken."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator

import pytest

from agent.runtime.base import State
from tests.integration.agent.conftest import RealEdge
from tests.support.fake_control import score, service
from tests.support.podman import Containers


@pytest.fixture
def edge(make_edge: Callable[..., RealEdge], own_containers: Containers) -> RealEdge:
    return make_edge(own_containers)


@contextlib.contextmanager
def forgotten(containers: Containers) -> Iterator[None]:
    """The power fails, and Podman's database has lost what was written to it here. Storage has not."""
    podman = containers.podman
    before = podman.folder / "database-before"
    podman.stop_service()
    shutil.copy(podman.database, before)
    podman.start()
    yield
    podman.lose_power()
    shutil.copy(before, podman.database)
    podman.start()


def external(containers: Containers) -> set[str]:
    shown = containers.podman.cli("ps", "--all", "--external", "--format", "{{.Names}} {{.Status}}").splitlines()
    return {line.split()[0] for line in shown if "Storage" in line}


@pytest.mark.clause("AGT-1", "AGT-7", "DEP-14")
@pytest.mark.case("P1")
def test_names_that_ghosts_of_ours_hold_are_taken_back(edge: RealEdge, own_containers: Containers):
    data = score(service("api", own_containers.image("service")), init=service("migrate", own_containers.image("done")))
    with forgotten(own_containers):
        edge.bring("u1", data)
    assert external(own_containers) == {"api", "migrate"}
    edge.boot()
    edge.work_until("u1", "converged")
    assert external(own_containers) == set()
    assert {name: edge.container(name).state for name in edge.names()} == {
        "api": State.RUNNING,
        "migrate": State.EXITED,
    }
    edge.control.remove("u1")
    edge.work_until("u1", "removed")
    assert edge.names() == set()


@pytest.mark.clause("DEP-14")
@pytest.mark.case("P1")
def test_a_deployment_that_is_to_go_takes_its_ghosts_along(edge: RealEdge, own_containers: Containers):
    with forgotten(own_containers):
        edge.bring("u1", score(service("api", own_containers.image("service"))))
    edge.control.drop("u1")
    edge.boot()
    edge.go()
    edge.go()
    assert external(own_containers) == set()


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P1")
def test_a_ghost_that_is_not_ours_is_reported_by_name_and_left(edge: RealEdge, own_containers: Containers):
    image = own_containers.image("service")
    own_containers.podman.cli("pull", "--quiet", image)
    with forgotten(own_containers):
        own_containers.podman.cli("create", "--name", "api", image)
    (entry,) = edge.runtime.containers()
    assert entry.state is State.GHOST
    report = edge.bring("u1", score(service("api", image), service("web", image)), state="failed")
    assert report.message == (
        f"preflight failed: name 'api' is held by storage entry {entry.id[:12]} which Fleet did not create "
        f"(podman rm {entry.id[:12]} removes it)"
    )
    edge.control.remove("u1")
    edge.work_until("u1", "removed")
    assert external(own_containers) == {"api"}
    own_containers.podman.cli("rm", entry.id[:12])
    edge.bring("u2", score(service("api", image)))
