"""What a secret may look like; a refusal never has a value in it."""

from __future__ import annotations

import pytest

from agent.wire.images import registry_of
from agent.wire.manifest import MAX_ENV_BYTES
from vault.policy import MAX_KEYS, MAX_VALUE_BYTES, name_faults, value_faults, whole_faults

pytestmark = pytest.mark.clause("AGT-10")


def test_good_ones_pass() -> None:
    assert name_faults("default", "db-1.main_") == []
    assert value_faults({"PASSWORD": "", "tls.crt": "-----\nä\n", "a": "x" * MAX_VALUE_BYTES}) == []
    assert whole_faults({"username", "password", "more"}, "Registry.example.com:5000") == []
    assert whole_faults({"key"}, "") == []


@pytest.mark.parametrize(
    ("namespace", "name", "path"),
    [("Shop", "db", "namespace"), ("", "db", "namespace"), ("a.b", "db", "namespace")]
    + [("default", name, "name") for name in ("", "..", ".db", "a/b", "a b", "ä", "db\n", "x" * 64)],
)
def test_a_bad_name_is_refused(namespace: str, name: str, path: str) -> None:
    (fault,) = name_faults(namespace, name)
    assert fault.path == path
    assert "allowed: " in fault.message


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("hunter2\x00", "contains a NUL character"),
        ("hunter2\ud800", "is no UTF-8 text"),
        ("hunter2" + "ä" * (MAX_VALUE_BYTES // 2), f"bytes; allowed: {MAX_VALUE_BYTES}"),
    ],
)
def test_a_bad_value_is_refused_and_not_repeated(value: str, words: str) -> None:
    (fault,) = value_faults({"password": value})
    assert fault.path == "values.password"
    assert words in fault.message
    assert "hunter2" not in str(fault)


def test_every_fault_is_told_at_once() -> None:
    assert [fault.path for fault in value_faults({"../x": "a", "b": "\x00", "c": "ok"})] == ["values.../x", "values.b"]


def test_the_longest_value_still_fits_into_an_environment() -> None:
    assert len("N" * 255 + "=") + MAX_VALUE_BYTES + 1 <= MAX_ENV_BYTES


def test_a_secret_has_keys_but_not_too_many() -> None:
    (fault,) = whole_faults(set(), "")
    assert "delete it" in fault.message
    (fault,) = whole_faults({str(number) for number in range(MAX_KEYS + 1)}, "")
    assert fault.message == "would have 65 keys; allowed: 64"


@pytest.mark.clause("AGT-15")
@pytest.mark.parametrize("registry", ["https://r.example.com", "r.example.com/shop", "r:port", "-r", "a b", "x" * 300])
def test_a_registry_is_a_host(registry: str) -> None:
    (fault,) = whole_faults({"username", "password"}, registry)
    assert fault.path == "registry"
    assert "allowed: host or host:port" in fault.message


@pytest.mark.clause("AGT-15")
def test_a_registrys_login_is_whole() -> None:
    (fault,) = whole_faults({"user", "password"}, "r.example.com")
    assert str(fault) == "values: the login for a registry has username and password; missing: username"


@pytest.mark.clause("AGT-15")
@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("registry.example.com/shop/api:1.0", "registry.example.com"),
        ("Registry.Example.com:5000/api@sha256:" + "0" * 64, "registry.example.com:5000"),
        ("localhost/api:1", "localhost"),
        ("host:5000/api:1", "host:5000"),
        ("shop/api:1", ""),
        ("api:1.0", ""),
        ("api@sha256:" + "0" * 64, ""),
    ],
)
def test_the_registry_of_an_image_is_what_it_begins_with(image: str, registry: str) -> None:
    assert registry_of(image) == registry
