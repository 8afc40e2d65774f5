"""Day one on a real site (AGT-15, AGT-16), with real Podman and a real registry."""

from __future__ import annotations

import pytest

from agent.runtime.base import ContainerSpec
from agent.runtime.podman import PodmanRuntime
from harness.waiting import wait_until
from tests.integration.agent.conftest import RealEdge
from tests.support.fake_control import score, service
from tests.support.podman import Containers

pytestmark = pytest.mark.slow

LIMIT = 50_000


@pytest.mark.clause("AGT-15")
def test_a_log_begins_anew_when_it_is_full(containers: Containers):
    runtime = PodmanRuntime(str(containers.podman.socket), log_bytes=LIMIT)
    runtime.pull(containers.image("talking"))
    identity = runtime.create(ContainerSpec("talking", containers.image("talking"), "no"))
    runtime.start(identity)
    wait_until(lambda: runtime.logs(identity, 1, 100).text == "the end", seconds=20, what="it has said all")

    log = containers.podman.cli("inspect", "--format", "{{.HostConfig.LogConfig.Path}}", identity).strip()
    with open(log, "rb") as file:
        kept = file.read()
    assert kept.endswith(b"the end\n")
    assert b"line 1\n" not in kept
    assert len(kept) <= LIMIT


@pytest.mark.clause("AGT-16")
def test_the_end_of_a_service_s_log_for_who_asks(edge: RealEdge, containers: Containers):
    edge.bring("u1", score(service("talking", containers.image("talking"))))
    container = edge.container("talking")
    wait_until(lambda: edge.runtime.logs(container.id, 1, 100).text == "the end", seconds=20, what="it has said all")
    edge.control.want_log("r1", "u1", "talking", lines=3)
    edge.control.want_log("r2", "another", "talking")
    edge.agent.poll()
    edge.agent.answer()
    edge.agent.answer()
    first, second = edge.control.logs
    assert (first.request, first.text, first.is_cut) == ("r1", "line 1999\nline 2000\nthe end", False)
    assert second.problem.startswith(
        "container talking: this device has none of that name for the deployment; it has: none"
    )
