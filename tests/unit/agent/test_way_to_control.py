"""The way to the control plane on a real site: a certificate authority of its own, a proxy in between (AGT-15)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.control import ControlError, ControlPlane, Unreachable
from agent.wire.messages import EnrolRequest
from tests.support.authority import Authority
from tests.support.fake_control import FakeControlPlane
from tests.support.forward_proxy import ForwardProxy

pytestmark = pytest.mark.clause("AGT-15")


@pytest.fixture(scope="module")
def site_ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def secure(site_ca: Authority) -> Iterator[FakeControlPlane]:
    with FakeControlPlane(tls=site_ca.server_context()) as fake:
        yield fake


@pytest.fixture
def proxy() -> Iterator[ForwardProxy]:
    with ForwardProxy() as running:
        yield running


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def enrolled(control: FakeControlPlane, **settings: str) -> str:
    request = EnrolRequest(device="edge-1", token=control.token)
    return ControlPlane(control.url, **settings).enrol(request).credential


def complaint(control: FakeControlPlane, **settings: str) -> str:
    with pytest.raises(Unreachable) as caught:
        enrolled(control, **settings)
    assert control.calls == []
    return str(caught.value)


def test_a_site_s_own_authority_is_trusted_when_it_is_named(secure: FakeControlPlane, site_ca: Authority):
    assert enrolled(secure, ca_file=str(site_ca.ca_file)) == secure.credential


def test_without_the_right_authority_nothing_is_sent_and_it_is_said_why(secure: FakeControlPlane, tmp_path: Path):
    hint = "server.ca_file names the file with the authority to trust"
    assert complaint(secure) == (
        f"{secure.url} is not trusted by this system's authorities: unable to get local issuer certificate; {hint}"
    )
    other = Authority(tmp_path, "Another CA").ca_file
    assert complaint(secure, ca_file=str(other)) == (
        f"{secure.url} is not trusted by the authorities in {other}: unable to get local issuer certificate; {hint}"
    )


def test_the_certificate_must_be_the_server_s_own(site_ca: Authority):
    with FakeControlPlane(tls=site_ca.server_context("127.0.0.2")) as other:
        assert "IP address mismatch, certificate is not valid for '127.0.0.1'" in complaint(
            other, ca_file=str(site_ca.ca_file)
        )


def test_a_ca_file_that_cannot_be_used_is_named(secure: FakeControlPlane, tmp_path: Path):
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("nothing\n")
    assert complaint(secure, ca_file=str(missing)) == (
        f"{secure.url} cannot be called: server.ca_file {missing} does not exist"
    )
    assert complaint(secure, ca_file=str(empty)).startswith(
        f"{secure.url} cannot be called with server.ca_file {empty}: "
    )


def test_a_proxy_is_gone_through_without_reading_along(
    secure: FakeControlPlane, site_ca: Authority, proxy: ForwardProxy
):
    assert enrolled(secure, ca_file=str(site_ca.ca_file), proxy=proxy.url) == secure.credential
    assert proxy.seen == [("CONNECT", secure.url.removeprefix("https://"))]


def test_plain_http_goes_through_it_too(control: FakeControlPlane, proxy: ForwardProxy):
    assert enrolled(control, proxy=proxy.url) == control.credential
    assert proxy.seen == [("POST", f"{control.url}/api/agent/v1/enroll")]


def test_a_proxy_with_a_login(secure: FakeControlPlane, site_ca: Authority):
    with ForwardProxy(login="edge:hunter2") as guarded:
        ca_file = str(site_ca.ca_file)
        assert enrolled(secure, ca_file=ca_file, proxy=guarded.url) == secure.credential
        secure.calls.clear()
        said = complaint(secure, ca_file=ca_file, proxy=f"http://edge:wrong-one@{guarded.address}")
    assert said == (
        f"{secure.url} cannot be reached through proxy http://…@{guarded.address}: "
        "Tunnel connection failed: 407 Proxy Authentication Required"
    )


def test_a_proxy_that_is_not_there_is_named(control: FakeControlPlane):
    said = complaint(control, proxy="http://127.0.0.1:9")
    assert said == f"{control.url} cannot be reached through proxy http://127.0.0.1:9: Connection refused"


@pytest.mark.parametrize("address", ["@proxy.example:99999", "@:80", "[@proxy:80", "/x@proxy:80"])
@pytest.mark.parametrize("is_environment", [False, True])
def test_a_proxy_that_is_no_address_is_said_without_its_password(
    control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch, address: str, is_environment: bool
):
    written = f"http://edge:hunter2{address}"
    if is_environment:
        monkeypatch.setenv("http_proxy", written)
    said = complaint(control, proxy="" if is_environment else written)
    setting = "the proxy of the environment" if is_environment else "server.proxy"
    assert said.startswith(f"{control.url} cannot be called: {setting} is no address; allowed: http://user:password@")
    assert "hunter2" not in said


@pytest.mark.parametrize("kept", ["one\ntwo-lines", "no-latin-\u2665"])
def test_a_credential_that_cannot_be_sent_is_not_repeated(control: FakeControlPlane, kept: str):
    with pytest.raises(ControlError) as caught:
        ControlPlane(control.url, credential=lambda: kept).desired("")
    said = "cannot be called: what is kept as this device's credential is none; enrol again"
    assert str(caught.value) == f"{control.url} {said}"
    assert caught.value.__context__ is None


def test_the_environment_s_proxy_counts_unless_the_configuration_has_one(
    control: FakeControlPlane, proxy: ForwardProxy, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert complaint(control).startswith(f"{control.url} cannot be reached through the proxy of the environment: ")
    assert enrolled(control, proxy=proxy.url) == control.credential
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert enrolled(control) == control.credential
    assert len(proxy.seen) == 1
    assert enrolled(control, proxy=proxy.url) == control.credential
    assert len(proxy.seen) == 2
