"""An archive from a container registry: Debian's ``docker-registry``, and one that plays the public ones' tricks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import requests

from demo.registry import Guard, LoopbackRegistry
from tests.integration.fetching.conftest import CONTENT, WEB_NAME, Device
from tests.support.authority import Authority
from tests.support.file_server import FileServer, cut_off, redirect, status
from tests.support.forward_proxy import ForwardProxy
from tests.support.needs import need
from tests.support.oci_registry import DOCKER, Publisher
from tests.support.private_registry import HTPASSWD, PASSWORD, USER

pytestmark = pytest.mark.clause("UPG-1", "UPG-3")

OTHER = CONTENT[::-1]
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackRegistry]:
    need("docker-registry")
    with LoopbackRegistry(tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.fixture
def publisher(registry: LoopbackRegistry) -> Publisher:
    return Publisher(f"http://{registry.address}", "fleet/agent")


class TestDebiansRegistry:
    def test_by_tag(self, device: Device, registry: LoopbackRegistry, publisher: Publisher) -> None:
        publisher.archive("2.0.0", b"notes", CONTENT)
        assert device.fetch(f"oci://{registry.address}/fleet/agent:2.0.0").code == 0
        assert device.has(CONTENT)

    def test_by_digest(self, device: Device, registry: LoopbackRegistry, publisher: Publisher) -> None:
        digest = publisher.archive("", CONTENT, type_=DOCKER)
        assert device.fetch(f"oci://{registry.address}/fleet/agent@{digest}").code == 0
        assert device.has(CONTENT)

    def test_goes_on_with_what_is_there(self, device: Device, registry: LoopbackRegistry, publisher: Publisher) -> None:
        publisher.archive("2.0.0", CONTENT)
        device.archive.write_bytes(CONTENT[:300_000])
        done = device.fetch(f"oci://{registry.address}/fleet/agent:2.0.0")
        assert done.code == 0
        assert device.has(CONTENT)
        assert "starts over" not in done.out

    def test_of_an_index_the_device_s_architecture(
        self, device: Device, registry: LoopbackRegistry, publisher: Publisher
    ) -> None:
        both = {"arm64": publisher.archive("", OTHER), "amd64": publisher.archive("", CONTENT)}
        publisher.index("both", both)
        address = f"oci://{registry.address}/fleet/agent:both"
        assert device.fetch(address).code == 0
        assert device.has(CONTENT)

    def test_of_an_index_without_the_device_s_architecture(
        self, device: Device, registry: LoopbackRegistry, publisher: Publisher
    ) -> None:
        publisher.index("others", {"arm64": publisher.archive("", OTHER), "s390x": publisher.archive("", CONTENT)})
        address = f"oci://{registry.address}/fleet/agent:others"
        done = device.fetch(address)
        assert (done.code, done.why) == (1, f"{address} has nothing for amd64; it has: arm64, s390x")

    def test_another_digest_names_the_layers(
        self, device: Device, registry: LoopbackRegistry, publisher: Publisher
    ) -> None:
        publisher.archive("moved", OTHER)
        address = f"oci://{registry.address}/fleet/agent:moved"
        done = device.fetch(address)
        found = hashlib.sha256(OTHER).hexdigest()
        wanted = f"{address} has no layer with the digest sha256:{SHA256}; it has: sha256:{found}"
        assert (done.code, done.why) == (1, wanted)

    def test_an_unknown_tag_is_a_sentence(self, device: Device, registry: LoopbackRegistry) -> None:
        done = device.fetch(f"oci://{registry.address}/fleet/agent:9.9.9")
        assert done.code == 1
        assert done.why.startswith(f"http://{registry.address}/v2/fleet/agent/manifests/9.9.9 answered 404; there is")

    def test_too_large_is_refused(self, device: Device, registry: LoopbackRegistry, publisher: Publisher) -> None:
        publisher.archive("2.0.0", CONTENT)
        done = device.fetch(f"oci://{registry.address}/fleet/agent:2.0.0", maxSize=500_000)
        assert done.code == 1
        assert "has 700,000 bytes, more than its maxSize of 500,000" in done.why

    def test_one_that_wants_a_login_is_a_sentence(self, device: Device, authority: Authority, tmp_path: Path) -> None:
        need("docker-registry")
        (tmp_path / "htpasswd").write_text(HTPASSWD)
        guard = Guard(authority.ca_file, *authority.issue("127.0.0.1", WEB_NAME), tmp_path / "htpasswd")
        with LoopbackRegistry(tmp_path / "registry", guard) as private, ForwardProxy() as proxy:
            proxy.hosts[f"{WEB_NAME}:443"] = private.address
            device.proxy = proxy.url
            with requests.Session() as session:
                session.auth, session.verify, session.trust_env = (USER, PASSWORD), str(authority.ca_file), False
                Publisher(f"https://{private.address}", "fleet/agent", session).archive("2.0.0", CONTENT)
            done = device.fetch(f"oci://{WEB_NAME}/fleet/agent:2.0.0")
        assert done.code == 1
        assert done.why.startswith(f"https://{WEB_NAME}/v2/fleet/agent/manifests/2.0.0 wants a login")
        assert PASSWORD not in done.why


class TestPublicRegistries:
    """They give a token to anybody, and lead to where the bytes are."""

    @pytest.fixture
    def shop(self, device: Device, web: FileServer) -> Iterator[FileServer]:
        """A registry by HTTPS, behind the site's proxy."""
        with ForwardProxy(hosts={f"{WEB_NAME}:443": web.address}) as proxy:
            device.proxy = proxy.url
            yield web

    def challenge(self, realm: str) -> str:
        return f'Bearer realm="{realm}",service="shop",scope="repository:fleet/agent:pull"'

    def manifest(self) -> bytes:
        return msgspec.json.encode({"layers": [{"digest": f"sha256:{SHA256}", "size": len(CONTENT)}]})

    def test_the_token_goes_to_the_registry_alone(
        self, device: Device, shop: FileServer, elsewhere: FileServer
    ) -> None:
        shop.answers.extend(
            [
                status(401, WWW_Authenticate=self.challenge(f"https://{WEB_NAME}/token")),
                status(200, b'{"token": "for-anybody"}'),
                status(200, self.manifest()),
                redirect(f"{elsewhere.url}/blob?signature=s3cret"),
                status(200, self.manifest()),
                redirect(f"{elsewhere.url}/blob?signature=s3cret"),
            ]
        )
        elsewhere.answers.append(cut_off(262_144))
        done = device.fetch(f"oci://{WEB_NAME}/fleet/agent:2.0.0")
        assert done.code == 0
        assert device.has(CONTENT)
        assert "s3cret" not in done.out
        assert shop.asked[1].path == "/token?service=shop&scope=repository%3Afleet%2Fagent%3Apull"
        assert [asked.authorization for asked in shop.asked] == ["", "", *["Bearer for-anybody"] * 4]
        assert [(asked.authorization, asked.range) for asked in elsewhere.asked] == [("", ""), ("", "bytes=262144-")]

    @pytest.mark.parametrize(
        "realm", ["http://192.0.2.7/token", "http://127.0.0.1:1/token", "oci://x/y:1", "file:///x"]
    )
    def test_a_token_is_asked_for_at_no_worse_place(self, device: Device, shop: FileServer, realm: str) -> None:
        shop.answers.append(status(401, WWW_Authenticate=self.challenge(realm)))
        done = device.fetch(f"oci://{WEB_NAME}/fleet/agent:2.0.0")
        assert done.code == 1
        assert "wants a login" in done.why
        assert len(shop.asked) == 1

    @pytest.mark.parametrize("body", [b"<html>", b'{"layers": 5}', b"[" * 100_000, b" " * 5_000_000])
    def test_what_is_no_manifest_is_a_sentence(self, device: Device, shop: FileServer, body: bytes) -> None:
        shop.answers.append(status(200, body))
        done = device.fetch(f"oci://{WEB_NAME}/fleet/agent:2.0.0")
        assert done.code == 1
        assert done.why.startswith(f"https://{WEB_NAME}/v2/fleet/agent/manifests/2.0.0 answered ")
