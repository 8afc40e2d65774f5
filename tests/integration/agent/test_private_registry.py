"""Pulls from a site's own registry: a login, a private authority; and the end of what was pulled (AGT-15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from agent.config import Registry
from agent.images import ImageStock
from agent.runtime.base import ContainerSpec, ImageUnavailable, Login, LoginRefused
from agent.runtime.podman import PodmanRuntime
from agent.store import Store
from agent.wire.manifest import SecretRef
from tests.integration.agent.conftest import RealEdge
from tests.support.devices import ManualClock
from tests.support.fake_control import score, service
from tests.support.podman import STAYS
from tests.support.private_registry import PASSWORD, PROXIED, USER, PrivateSite, private_site

pytestmark = [pytest.mark.slow, pytest.mark.clause("AGT-15")]


@pytest.fixture(scope="module")
def running_site() -> Iterator[PrivateSite]:
    with private_site() as started:
        started.publish({"service:1": STAYS, "moving:1": STAYS})
        yield started


@pytest.fixture
def site(running_site: PrivateSite) -> Iterator[PrivateSite]:
    """Without containers and images before and after each test."""
    yield running_site
    running_site.podman.remove_containers()
    running_site.podman.cli("rmi", "--all", "--force")


@pytest.fixture
def runtime(site: PrivateSite) -> PodmanRuntime:
    return PodmanRuntime(str(site.podman.socket))


@pytest.fixture
def device(site: PrivateSite, make_edge: Callable[..., RealEdge]) -> RealEdge:
    """A device with a login in its own configuration."""
    edge = make_edge(site, settle_seconds=0.1)
    own = {site.registry.address: Registry(USER, SecretRef("registry", "password"))}
    edge.config = msgspec.structs.replace(edge.config, registries=own)
    put_password(edge, PASSWORD)
    edge.boot()
    return edge


def put_password(edge: RealEdge, password: str) -> None:
    file = edge.secrets / "registry" / "password"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(password)
    file.chmod(0o600)


def test_an_image_is_fetched_with_the_device_s_own_login(device: RealEdge, site: PrivateSite):
    device.bring("u1", score(service("api", site.tag("service:1"))))
    assert device.names() == {"api"}
    files = [path for path in site.podman.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in [*files, *device.state.rglob("*.json")] if PASSWORD.encode() in path.read_bytes()]


def test_with_one_of_the_control_plane(site: PrivateSite, make_edge: Callable[..., RealEdge]):
    edge = make_edge(site, settle_seconds=0.1)
    edge.control.logins[site.registry.address] = (USER, PASSWORD)
    edge.bring("u1", score(service("api", site.tag("service:1"))))
    assert edge.names() == {"api"}


@pytest.mark.case("P9")
def test_a_registry_that_does_not_let_us_in_is_quoted_and_what_runs_stays(device: RealEdge, site: PrivateSite):
    device.bring("u1", score(service("api", site.tag("service:1"))))
    before = device.container("api")
    put_password(device, "wrong-password-xyz")
    device.boot()
    report = device.bring("u1", score(service("api", site.tag("moving:1"))), revision=2, state="failed")
    assert report.message.startswith(f"preflight failed: image {site.tag('moving:1')}: ")
    assert "unauthorized: authentication required; " in report.message
    assert f"does not let user 'edge' of [registries.\"{site.registry.address}\"] have it" in report.message
    assert "wrong-password" not in report.message
    assert device.container("api").started_at == before.started_at

    put_password(device, PASSWORD)
    device.boot()
    device.work_until("u1", "converged", revision=2, retry=True)


def test_without_a_login_it_is_said_where_one_can_be_put(site: PrivateSite, make_edge: Callable[..., RealEdge]):
    edge = make_edge(site, settle_seconds=0.1)
    report = edge.bring("u1", score(service("api", site.tag("service:1"))), state="failed")
    assert "unauthorized: authentication required; there is no login for " in report.message
    assert f'[registries."{site.registry.address}"]' in report.message


def test_podman_asks_for_a_manifest_without_the_login_so_a_refusal_proves_nothing(
    runtime: PodmanRuntime, site: PrivateSite
):
    login = Login(site.registry.address, USER, PASSWORD)
    with pytest.raises(LoginRefused, match="authentication required"):
        runtime.probe(site.tag("service:1"))
    runtime.probe(site.tag("service:1"), login)
    runtime.probe(site.tag("nowhere:1"), login)
    with pytest.raises(ImageUnavailable, match="manifest unknown"):
        runtime.pull(site.tag("nowhere:1"), login)


def test_an_authority_that_podman_was_not_told_of_is_named_by_podman(runtime: PodmanRuntime, site: PrivateSite):
    elsewhere = site.trust.with_name("elsewhere")
    site.trust.rename(elsewhere)
    try:
        with pytest.raises(ImageUnavailable, match="x509: certificate signed by unknown authority") as caught:
            runtime.pull(site.tag("service:1"), Login(site.registry.address, USER, PASSWORD))
    finally:
        elsewhere.rename(site.trust)
    assert not isinstance(caught.value, LoginRefused)


def test_podman_s_own_proxy_leads_to_a_registry_that_only_the_proxy_knows(runtime: PodmanRuntime, site: PrivateSite):
    runtime.pull(f"{PROXIED}/service:1", Login(PROXIED, USER, PASSWORD))
    assert set(site.proxy.seen) == {("CONNECT", f"{PROXIED}:443")}
    runtime.create(ContainerSpec("api", f"{PROXIED}/service:1", "no"))
    assert "PROXY" not in site.podman.cli("inspect", "--format", "{{.Config.Env}}", "api").upper()


# Pruning ---------------------------------------------------------------------------------------------------------


class Shelf:
    """An :class:`ImageStock` on real Podman whose time the test moves."""

    def __init__(self, folder: Path, runtime: PodmanRuntime, site: PrivateSite) -> None:
        self.runtime = runtime
        self.login = Login(site.registry.address, USER, PASSWORD)
        self._clock = ManualClock()
        self._stock = ImageStock(runtime, Store(folder), self._clock, 3600)

    def pull(self, reference: str) -> str:
        return self._stock.pull(reference, self.login).id

    def let_pass(self, *references: str) -> set[str]:
        """Two looks with more than the grace time in between; the images that are left."""
        for _ in range(2):
            self._clock.forward(3601)
            self._stock.prune(references)
        return {image.id for image in self.runtime.images()}


@pytest.fixture
def shelf(tmp_path: Path, runtime: PodmanRuntime, site: PrivateSite) -> Shelf:
    return Shelf(tmp_path, runtime, site)


def test_what_was_pulled_goes_when_neither_a_container_nor_a_document_uses_it(shelf: Shelf, site: PrivateSite):
    image = shelf.pull(site.tag("service:1"))
    digest = shelf.runtime.image(image)
    assert digest is not None
    assert shelf.pull(f"{site.tag('service')}@{digest.digests[0]}") == image
    theirs = shelf.runtime.create(ContainerSpec("theirs", site.tag("service:1"), "no"))
    assert shelf.let_pass() == {image}
    shelf.runtime.remove(theirs)
    assert shelf.let_pass(site.tag("service:1")) == {image}
    assert shelf.let_pass() == set()


def test_what_somebody_else_has_is_never_touched(shelf: Shelf, site: PrivateSite):
    theirs = shelf.runtime.pull(site.tag("service:1"), shelf.login).id
    assert shelf.pull(site.tag("service:1")) == theirs
    ours = shelf.pull(site.tag("moving:1"))
    site.podman.cli("tag", site.tag("moving:1"), "localhost/kept:1")
    assert shelf.let_pass() == {theirs, ours}


def test_an_image_that_lost_its_name_goes_and_the_one_that_has_it_now_stays(shelf: Shelf, site: PrivateSite):
    old = shelf.pull(site.tag("moving:1"))
    site.podman.build(site.tag("moving:1"), command=STAYS, env={"VERSION": "2"})
    new = {image.id for image in shelf.runtime.images()} - {old}
    assert [image.names for image in shelf.runtime.images() if image.id == old] == [()]
    assert shelf.let_pass(site.tag("moving:1")) == new
