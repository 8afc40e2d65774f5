"""Who the agent is to image registries, and what it says when one does not let it in (AGT-15)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent.config import Registry
from agent.runtime.base import Login, LoginRefused
from agent.runtime.simulated import SimulatedRuntime
from agent.wire.manifest import SecretRef
from tests.support.devices import Edge, ManualClock
from tests.support.fake_control import FakeControlPlane, score, service

pytestmark = pytest.mark.clause("AGT-15")

REGISTRY = "r.example:5000"
PRIVATE = service("api", f"{REGISTRY}/api:1")


class Guarded(SimulatedRuntime):
    """Its registries let in one user with one password."""

    password = "right-horse"

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=clock)
        self.logins: list[Login | None] = []

    def probe(self, reference: str, login: Login | None = None) -> None:
        self.logins.append(login)
        if login is None or (login.username, login.password) != ("edge", self.password):
            raise LoginRefused(f"image {reference}: unauthorized: authentication required")
        super().probe(reference, login)


@pytest.fixture
def guarded(tmp_path: Path, control: FakeControlPlane) -> Edge:
    clock = ManualClock()
    return Edge(tmp_path / "state", control, runtime=Guarded(clock), clock=clock)


def attempted(edge: Edge) -> list[Login | None]:
    assert isinstance(edge.runtime, Guarded)
    return edge.runtime.logins


def with_registry(edge: Edge, registry: str = REGISTRY, password: str = Guarded.password) -> None:
    """The device's own configuration has a login, its password is in a file."""
    folder = edge.secrets / "registry"
    folder.mkdir(parents=True, exist_ok=True)
    put(folder / "password", password)
    own = {registry: Registry("edge", SecretRef("registry", "password"))}
    edge.config = msgspec.structs.replace(edge.config, registries=own)
    edge.boot()


def put(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o600)


def failure(edge: Edge) -> str:
    return edge.control.last("u1").message


def test_the_device_s_own_login_is_taken_first(guarded: Edge):
    with_registry(guarded)
    guarded.control.logins[REGISTRY] = ("edge", "another")
    guarded.control.want("u1", score(PRIVATE))
    guarded.go()
    assert [container.name for container in guarded.runtime.containers()] == ["api"]
    assert guarded.control.secret_requests == []


def test_else_the_control_plane_s_for_that_deployment(guarded: Edge):
    guarded.control.logins[REGISTRY] = ("edge", "right-horse")
    guarded.control.want("u1", score(PRIVATE, service("web", f"{REGISTRY}/web:1")))
    guarded.go()
    assert [container.name for container in guarded.runtime.containers()] == ["api", "web"]
    (request,) = guarded.control.secret_requests
    assert (request.deployment, request.references, request.registries) == ("u1", [], [REGISTRY])


def test_it_is_asked_for_anew_after_the_registry_refused_it(guarded: Edge):
    guarded.control.logins[REGISTRY] = ("edge", "old-horse")
    guarded.control.want("u1", score(PRIVATE))
    guarded.go()
    assert failure(guarded) == (
        f"preflight failed: image {REGISTRY}/api:1: unauthorized: authentication required; {REGISTRY} does not let "
        "user 'edge' of the control plane have it; correct the password or the rights"
    )
    guarded.control.logins[REGISTRY] = ("edge", "right-horse")
    guarded.clock.forward(60)
    guarded.go()
    assert [container.name for container in guarded.runtime.containers()] == ["api"]


def test_a_file_with_the_wrong_password_is_read_anew_and_the_place_is_named(guarded: Edge):
    with_registry(guarded, password="wrong-horse")
    guarded.control.want("u1", score(PRIVATE))
    guarded.go()
    assert f"does not let user 'edge' of [registries.\"{REGISTRY}\"] have it" in failure(guarded)
    put(guarded.secrets / "registry" / "password", "right-horse")
    guarded.clock.forward(60)
    guarded.go()
    assert [container.name for container in guarded.runtime.containers()] == ["api"]


def test_a_password_that_cannot_be_read_is_said_before_any_pull(guarded: Edge):
    with_registry(guarded)
    (guarded.secrets / "registry" / "password").chmod(0o644)
    guarded.control.want("u1", score(PRIVATE))
    guarded.go()
    assert f"image {REGISTRY}/api:1: login for registry {REGISTRY}: secret registry/password: " in failure(guarded)
    assert "is open to every user of this device" in failure(guarded)
    assert attempted(guarded) == []


def test_without_a_login_it_is_said_where_one_can_be_put(guarded: Edge):
    guarded.control.want("u1", score(PRIVATE))
    guarded.go()
    assert attempted(guarded) == [None]
    assert failure(guarded).endswith(
        f"authentication required; there is no login for {REGISTRY}; run: fleetctl secret set-registry NAME {REGISTRY}"
        f', or add [registries."{REGISTRY}"] to the configuration of the device'
    )


def test_a_control_plane_that_cannot_be_asked_does_not_keep_a_public_image_away(edge: Edge):
    edge.control.refuse_secrets_with = 503
    edge.control.want("u1", score(PRIVATE))
    edge.go()
    assert [container.name for container in edge.runtime.containers()] == ["api"]


def test_but_it_is_said_when_the_image_is_private(guarded: Edge):
    guarded.control.refuse_secrets_with = 503
    guarded.control.want("u1", score(PRIVATE))
    guarded.go()
    reason = "and the control plane could not be asked for one (the control plane answered 503: the vault is closed)"
    assert f"there is no login for {REGISTRY}, {reason}; " in failure(guarded)


def test_a_short_name_gets_no_login_as_nobody_knows_who_will_see_it(guarded: Edge):
    with_registry(guarded, "docker.io")
    guarded.control.want("u1", score(service("api", "me/api:1")))
    guarded.go()
    assert attempted(guarded) == [None]
    assert failure(guarded).endswith(
        "write the image's name with its registry (docker.io/…): a short name gets no login"
    )


@pytest.mark.parametrize("host", ["docker.io", "index.docker.io", "Registry-1.docker.io"])
def test_docker_hub_has_several_names(guarded: Edge, host: str):
    with_registry(guarded, host)
    guarded.control.want("u1", score(service("api", "docker.io/me/api:1")))
    guarded.go()
    assert [container.name for container in guarded.runtime.containers()] == ["api"]


@pytest.mark.clause("AGT-10")
def test_no_password_is_on_the_disk_in_a_report_or_in_a_log(guarded: Edge, caplog: pytest.LogCaptureFixture):
    guarded.control.logins[REGISTRY] = ("edge", "wrong-horse")
    guarded.control.want("u1", score(PRIVATE))
    guarded.go()
    guarded.control.logins[REGISTRY] = ("edge", "right-horse")
    guarded.clock.forward(60)
    guarded.go()
    kept = b"".join(path.read_bytes() for path in guarded.state.rglob("*") if path.is_file())
    said = kept.decode("utf-8", "replace") + caplog.text + repr(guarded.control.reports) + repr(attempted(guarded))
    assert "horse" not in said
