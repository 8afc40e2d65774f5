"""Secrets over REST: what goes in, what is refused, and what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from fleet.core.models import AuditEntry
from tests.integration.api.rest import Rest, database, problem
from tests.integration.vault.kit import LOGIN, Vault
from vault.models import SecretEntry
from vault.selectors import Reference, values_of

pytestmark = [pytest.mark.clause("AGT-10", "API-1"), pytest.mark.database]
SECRETS = "namespaces/default/secrets/"
DB = f"{SECRETS}db/"


@pytest.fixture
def rest(as_role: Callable[[str], Rest], vault: Vault) -> Rest:
    return as_role("operator")


def value(key: str, name: str = "db") -> str | None:
    return values_of("default", {Reference(name, key)}).get(Reference(name, key))


def test_a_secret_is_put_changed_listed_and_deleted(rest: Rest, vault: Vault) -> None:
    made = rest.call("PUT", DB, {"values": {"password": "hunter2", "user": "api"}}).json()
    assert made["metadata"] == {
        "name": "db",
        "namespace": "default",
        "creationTimestamp": "2026-12-01T14:00:00Z",
    }
    assert (made["keys"], made["registry"], made["updatedBy"]) == (["password", "user"], "", "operator")
    vault.world.later(hours=1)
    changed = rest.call("PATCH", DB, {"values": {"password": " two\n words ", "user": None, "token": ""}}).json()
    assert (changed["keys"], changed["updatedAt"]) == (["password", "token"], "2026-12-01T15:00:00Z")
    assert (value("password"), value("token"), value("user")) == (" two\n words ", "", None)
    assert rest.get(DB) == changed
    assert rest.names(SECRETS) == ["db"]
    assert rest.names(SECRETS, search="x") == []
    assert rest.get("namespaces/shop/secrets/")["results"] == []
    assert rest.call("DELETE", DB).status_code == 204
    assert problem(rest.call("DELETE", DB), 404)["detail"].startswith("there is no secret default/db")
    assert problem(rest.call("GET", DB), 404)


def test_a_patch_makes_a_secret_that_does_not_exist(rest: Rest) -> None:
    assert rest.call("PATCH", DB, {"values": {"password": "x"}}).json()["keys"] == ["password"]
    assert value("password") == "x"


@pytest.mark.clause("AGT-15")
def test_a_secret_becomes_a_registrys_login_and_no_longer(rest: Rest) -> None:
    made = rest.call("PUT", f"{SECRETS}pull/", {"values": LOGIN, "registry": "R.example.com:5000"}).json()
    assert made["registry"] == "r.example.com:5000"
    assert rest.call("PATCH", f"{SECRETS}pull/", {"values": {"note": "x"}}).json()["registry"] == "r.example.com:5000"
    other = rest.call("PUT", f"{SECRETS}pull2/", {"values": LOGIN, "registry": "r.example.com:5000"})
    assert "default/pull is the login" in problem(other, 409)["detail"]
    assert rest.call("PATCH", f"{SECRETS}pull/", {"registry": ""}).json()["registry"] == ""


def test_who_needs_it_is_told(rest: Rest, vault: Vault) -> None:
    vault.device("edge-1")
    vault.put(password="hunter2")
    vault.put("pull", registry="registry.example.com:5000", **LOGIN)
    vault.rollout("db/password")
    vault.rollout("other/password", name="web", image="quay.example.com/web:1")
    vault.rollout("db/password", name="shop", namespace="shop")
    assert rest.get(DB)["usedBy"] == ["default/api"]
    assert rest.get(f"{SECRETS}pull/")["usedBy"] == ["default/api"]
    vault.rollout(name="api")
    assert rest.get(DB)["usedBy"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("PUT", DB, {}, "values: This field is required."),
        ("PUT", DB, {"values": {}}, "values: is empty; needed: at least one key"),
        ("PUT", DB, {"values": "s3cr3t"}, 'values: Expected a dictionary of items but got type "str".'),
        ("PUT", DB, {"values": {"a": 7}}, "values.a: found int; allowed: text"),
        ("PUT", DB, {"values": {"a": None}}, "values.a: This field may not be null."),
        ("PUT", DB, {"values": {"a": "s3cr3t\x00"}}, "values.a: contains a NUL character"),
        ("PUT", DB, {"values": {"a": "s3cr3t\ud800"}}, "values.a: is no UTF-8 text"),
        ("PUT", DB, {"values": {"a": "s3cr3t" * 30_000}}, "values.a: has 180000 bytes; allowed: 130815"),
        ("PUT", DB, {"values": {"..": "s3cr3t"}}, "values...: is no name of a key"),
        ("PUT", DB, {"values": {"a": "s3cr3t"}, "regsitry": "x"}, "regsitry: unknown field; allowed: values, registry"),
        ("PUT", DB, {"values": {"a": "s3cr3t"}, "registry": "r.example.com"}, "missing: username, password"),
        ("PUT", DB, {"values": LOGIN, "registry": "https://r"}, "registry: found 'https://r'; allowed: host"),
        ("PATCH", DB, {"values": {"a": "s3cr3t\x00"}}, "values.a: contains a NUL character"),
        ("PATCH", DB, {}, "values: is empty"),
        ("PUT", f"{SECRETS}.db/", {"values": {"a": "s3cr3t"}}, "name: found '.db'; allowed: letters"),
        ("PUT", "namespaces/Shop/secrets/db/", {"values": {"a": "s3cr3t"}}, "namespace: found 'Shop'; allowed: lower"),
    ],
)
def test_what_is_wrong_is_named_and_no_value_is_repeated(
    rest: Rest, method: str, path: str, body: dict[str, Any], words: str
) -> None:
    before = database()
    answer = rest.call(method, path, body)
    assert words in problem(answer, 422)["detail"]
    assert "s3cr3t" not in answer.content.decode()
    assert database() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"values": {"a": "s3cr3t"', 400),
        (b'{"values": {"a": "s3cr3t", "a": "x"}}', 400),
        (b'{"values": {"a": "s3cr3t\x01"}}', 400),
        (b'"s3cr3t"', 400),
        (b'{"values": {"a": "' + b"s3cr3t" * 200_000 + b'"}}', 413),
    ],
)
def test_what_cannot_be_read_is_refused_and_not_repeated(rest: Rest, body: bytes, status: int) -> None:
    answer = rest.call("PUT", DB, body)
    problem(answer, status)
    assert "s3cr3t" not in answer.content.decode()


def test_a_vault_without_keys_says_so(rest: Rest, settings: Settings) -> None:
    settings.FLEET_SECRET_KEYS = []
    detail = problem(rest.call("PUT", DB, {"values": {"a": "x"}}), 409)["detail"]
    assert "an administrator sets FLEET_SECRET_KEYS" in detail
    assert not SecretEntry.objects.exists()
    assert not AuditEntry.objects.exists()
