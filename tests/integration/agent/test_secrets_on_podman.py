"""Secrets in real containers: exact, replaced when they change, and nowhere else (AGT-10)."""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
import pytest

from agent.runtime.base import State
from agent.status import lines
from agent.wire.manifest import PodmanService, SecretEnvVar, SecretRef
from tests.integration.agent.conftest import RealEdge
from tests.support.fake_control import score, service
from tests.support.podman import Containers

VALUE = "find-me-1 \"double\" 'single'\n\tfind-me-2 $HOME `id` \\n --flag=✓\nfind-me-3 — ü "
NEEDS = [SecretEnvVar("DB_PASSWORD", SecretRef("db", "password"))]

pytestmark = pytest.mark.clause("AGT-10")


def needy(containers: Containers, name: str = "api", image: str = "service") -> PodmanService:
    return service(name, containers.image(image), secret_env=NEEDS)


def ids(edge: RealEdge) -> dict[str, str]:
    return {container.name: container.id for container in edge.runtime.containers()}


def test_a_value_arrives_exactly_and_a_changed_one_replaces_what_uses_it(edge: RealEdge, containers: Containers):
    edge.control.secrets["db", "password"] = VALUE
    plain, init = service("web", containers.image("service")), service("migrate", containers.image("done"))
    data = score(needy(containers), plain, init=init)
    edge.bring("u1", data)
    assert containers.environment("api")["DB_PASSWORD"] == VALUE
    before = ids(edge)

    edge.bring("u1", data, revision=2)
    assert ids(edge) == before, "a retarget of the same values"

    edge.put_secret("db", "password", "rotated")
    edge.bring("u1", data, revision=3)
    after = ids(edge)
    assert {name for name in before if before[name] != after[name]} == {"migrate", "api"}
    assert containers.environment("api")["DB_PASSWORD"] == "rotated"
    assert edge.container("migrate").finished_at <= edge.container("api").started_at

    edge.put_secret("db", "password", "not to be had").chmod(0o644)
    report = edge.bring("u1", data, revision=4, state="failed")
    assert report.message.startswith("preflight failed: secret db/password for DB_PASSWORD of api: ")
    assert ids(edge) == after
    assert edge.container("api").state is State.RUNNING


def test_a_value_is_in_the_container_and_nowhere_else(
    edge: RealEdge, containers: Containers, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    edge.control.secrets["db", "password"] = VALUE
    edge.bring("u1", score(needy(containers)))
    edge.control.want("u2", score(needy(containers, "other"), init=needy(containers, "migrate", "telling")), name="b")
    report = edge.work_until("u2", "failed")
    assert report.message == "init container migrate failed with exit code 5: no access with [secret db/password]"
    edge.go()
    edge.agent.write_status()

    found: list[dict[str, Any]] = json.loads(containers.podman.cli("inspect", *ids(edge)))
    for each in found:
        assert any("find-me" in variable for variable in each["Config"].pop("Env")), "where it must be"
    assert len(found) == 2
    places = {
        "log": caplog.text.encode(),
        "reports": msgspec.json.encode(edge.control.reports),
        "status": "\n".join(lines(edge.agent.status(), is_running=True)).encode(),
        "podman inspect": json.dumps(found).encode(),
        "podman ps": containers.podman.cli("ps", "--all", "--format", "json").encode(),
        "Podman's service": (containers.podman.folder / "service.log").read_bytes(),
    }
    files = [path for path in edge.state.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {
        "secrets.cache",
        "secrets.key",
        "desired.json",
        "reports.json",
        "status.json",
    }
    places |= {str(path): path.read_bytes() for path in files}
    assert [name for name, text in places.items() if b"find-me" in text] == []
