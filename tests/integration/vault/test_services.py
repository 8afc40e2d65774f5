"""Secrets are put, merged, deleted and rotated; all of it is audited, and only names are."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from fleet.core.errors import Conflict, Invalid, NotFound
from fleet.core.models import AuditEntry
from tests.integration.vault.kit import LOGIN, Vault
from vault.models import Secret, SecretEntry
from vault.selectors import Reference, registry_logins, secret_named, secrets_overview, values_of
from vault.services import rotating, secret_delete, secret_merge, secret_put, secrets_rotate

pytestmark = [pytest.mark.clause("AGT-10"), pytest.mark.database]


def merged(name: str = "db", registry: str | None = None, **values: str | None) -> None:
    secret_merge(namespace="default", name=name, values=values, registry=registry, actor=None)


def stored(name: str = "db") -> dict[str, str]:
    keys = SecretEntry.objects.filter(secret__name=name).values_list("key", flat=True)
    found = values_of("default", {Reference(name, key) for key in keys})
    return {reference.key: value for reference, value in found.items()}


def newest_audit() -> tuple[str, str, dict[str, str]]:
    entry = AuditEntry.objects.first()
    assert entry is not None
    return entry.action, f"{entry.object_kind} {entry.object_name}", entry.detail


def test_a_put_replaces_the_whole_set(vault: Vault) -> None:
    vault.put(password="hunter2", user="api")
    assert newest_audit() == ("create", "Secret default/db", {"set": "password, user"})
    vault.world.later(hours=1)
    vault.put(password="hunter3", token="t")
    assert stored() == {"password": "hunter3", "token": "t"}
    assert newest_audit() == ("change", "Secret default/db", {"set": "password, token", "removed": "user"})
    secret = secret_named("default", "db")
    assert (secret.updated_at - secret.created_at).total_seconds() == 3600
    assert secret.updated_by == "system"


def test_a_merge_keeps_the_others_and_takes_away_what_is_none(vault: Vault) -> None:
    merged(password="hunter2", user="api")
    merged(password="hunter3", user=None, gone=None)
    assert stored() == {"password": "hunter3"}
    assert newest_audit()[2] == {"set": "password", "removed": "user"}


def test_a_merge_of_nothing_leaves_no_trace(vault: Vault) -> None:
    vault.put("pull", registry="r.example.com", **LOGIN)
    vault.world.later(hours=1)
    merged("pull", registry="r.example.com", gone=None)
    assert AuditEntry.objects.count() == 1
    secret = secret_named("default", "pull")
    assert secret.updated_at == secret.created_at


def test_the_last_key_is_not_taken_away(vault: Vault) -> None:
    merged(password="hunter2")
    with pytest.raises(Invalid, match="at least one key"):
        merged(password=None)
    with pytest.raises(Invalid, match="at least one key"):
        merged("new")
    assert stored() == {"password": "hunter2"}
    assert Secret.objects.count() == 1


def test_a_delete_takes_all_values(vault: Vault) -> None:
    vault.put(password="hunter2", user="api")
    secret_delete(namespace="default", name="db", actor=None)
    assert not SecretEntry.objects.exists()
    assert newest_audit() == ("delete", "Secret default/db", {"removed": "password, user"})
    with pytest.raises(NotFound, match="no secret default/db"):
        secret_delete(namespace="default", name="db", actor=None)


def test_what_is_refused_changes_nothing(vault: Vault) -> None:
    vault.put(password="hunter2")
    before = AuditEntry.objects.count(), stored()
    for values in ({"..": "s3cr3t"}, {"a": "s3cr3t\x00"}, {str(number): "s3cr3t" for number in range(65)}, {}):
        with pytest.raises(Invalid) as caught:
            secret_put(namespace="default", name="db", values=values, registry="", actor=None)
        assert "s3cr3t" not in str(caught.value)
    assert (AuditEntry.objects.count(), stored()) == before


def test_without_a_key_nothing_is_written(vault: Vault, settings: Settings) -> None:
    settings.FLEET_SECRET_KEYS = []
    with pytest.raises(Conflict, match="FLEET_SECRET_KEYS"):
        vault.put(password="hunter2")
    assert not Secret.objects.exists()


@pytest.mark.clause("AGT-15")
def test_a_namespace_has_one_login_for_a_registry(vault: Vault) -> None:
    vault.put("pull", registry="r.example.com", **LOGIN)
    assert newest_audit()[2] == {"set": "password, username", "registry": "r.example.com"}
    vault.put("pull", namespace="shop", registry="r.example.com", **LOGIN)
    with pytest.raises(Conflict, match=r"secret default/pull is the login for R\.example\.com already"):
        vault.put("other", registry="R.example.com", **LOGIN)
    merged("pull", registry="")
    vault.put("other", registry="R.example.com", **LOGIN)
    assert registry_logins("default", {"r.example.com"})["r.example.com"].username == "puller"


@pytest.mark.clause("AGT-15")
def test_a_registrys_login_keeps_its_two_keys(vault: Vault) -> None:
    vault.put("pull", registry="r.example.com", **LOGIN)
    with pytest.raises(Invalid, match="missing: username"):
        merged("pull", username=None)
    merged("pull", username="robot")
    login = registry_logins("default", {"r.example.com"})["r.example.com"]
    assert login == ("robot", "letmepull")
    assert "letmepull" not in repr(login)


def test_a_list_of_secrets_reads_no_sealed_value_and_takes_two_queries(vault: Vault) -> None:
    for number in range(20):
        vault.put(f"s{number}", a="1", b="2")
    with CaptureQueriesContext(connection) as queries:
        assert [len(secret.entries.all()) for secret in secrets_overview()] == [2] * 20
    assert len(queries) == 2
    assert not any('"sealed"' in query["sql"] for query in queries)


# Rotation ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def keys(settings: Settings) -> Callable[..., None]:
    """Sets the keys by their names; the same name is the same key."""
    made: dict[str, str] = {}

    def use(*names: str) -> None:
        settings.FLEET_SECRET_KEYS = [made.setdefault(name, Fernet.generate_key().decode()) for name in names]

    return use


def rotate() -> str:
    out = io.StringIO()
    call_command("rotate_secrets", stdout=out)
    return out.getvalue()


def test_after_a_rotation_the_old_key_can_go(vault: Vault, keys: Callable[..., None]) -> None:
    keys("old")
    vault.put(password="hunter2", user="api")
    keys("new", "old")
    vault.put("fresh", token="t")
    assert rotate().splitlines()[0] == "2 values encrypted with the newest key."
    assert newest_audit() == ("rotate", "Secret all", {"values": 2})
    assert rotate().splitlines()[0] == "0 values encrypted with the newest key."
    keys("new")
    assert stored() == {"password": "hunter2", "user": "api"}
    assert stored("fresh") == {"token": "t"}


def test_a_value_that_no_key_opens_is_named_and_stops_nothing(vault: Vault, keys: Callable[..., None]) -> None:
    keys("lost")
    vault.put(password="hunter2")
    keys("old")
    vault.put("api", token="t")
    keys("new", "old")
    with pytest.raises(CommandError) as caught:
        rotate()
    assert "1 value left alone: no key" in str(caught.value)
    assert str(caught.value).endswith(":\n  default/db/password")
    assert "hunter2" not in str(caught.value)
    keys("new")
    assert stored("api") == {"token": "t"}
    keys("lost")
    assert stored() == {"password": "hunter2"}


def test_an_interrupted_rotation_is_gone_on_with(
    vault: Vault, keys: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys("old")
    for name in "abcdefg":
        vault.put(name, key=name)
    keys("new", "old")
    monkeypatch.setattr(rotating, "BATCH", 3)
    rotate_one, seen = rotating._seal_anew, []

    def cut_off(secret: Secret, *rest: Any) -> None:
        seen.append(secret.name)
        rotate_one(secret, *rest)
        if secret.name == "e" and len(seen) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(rotating, "_seal_anew", cut_off)
    with pytest.raises(KeyboardInterrupt):
        secrets_rotate()
    assert secrets_rotate().done == 3
    assert "".join(seen) == "abcde" + "efg"
    keys("new")
    assert [stored(name) for name in "abcdefg"] == [{"key": name} for name in "abcdefg"]


def test_without_a_key_there_is_no_rotation(vault: Vault, settings: Settings) -> None:
    settings.FLEET_SECRET_KEYS = []
    with pytest.raises(CommandError, match="FLEET_SECRET_KEYS"):
        rotate()
