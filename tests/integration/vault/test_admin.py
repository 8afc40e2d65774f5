"""Secrets in the admin: made, set, listed and deleted by people who never see a value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from fleet.core.models import AuditEntry
from tests.integration.admin.pages import at, buttons, rows, words
from tests.integration.vault.kit import LOGIN, Vault
from vault.models import Secret
from vault.selectors import Reference, registry_logins, values_of

pytestmark = [pytest.mark.clause("AGT-10", "ADM-1"), pytest.mark.database]
LIST, ADD = "vault_secret_changelist", "vault_secret_add"


@pytest.fixture
def browser(signed_in: Callable[[str], Client], vault: Vault) -> Client:
    return signed_in("operator")


def value(key: str, name: str = "db") -> str | None:
    return values_of("default", {Reference(name, key)}).get(Reference(name, key))


def test_a_secret_is_made_and_its_lines_are_those_that_were_typed(browser: Client) -> None:
    form = {"namespace": "default", "name": "db", "key": "cert", "value": " one\r\ntwo\r\n"}
    page = browser.post(at(ADD), form, follow=True)
    assert "The secret default/db is made." in words(page)
    assert value("cert") == " one\ntwo\n"
    assert AuditEntry.objects.get().detail == {"set": "cert"}
    assert buttons(page) == {"set", "registry", "remove"}
    assert "{name: VARIABLE, secret: {name: db, key: cert}}" in words(page)


@pytest.mark.clause("AGT-15")
def test_a_login_for_a_registry_is_made_at_once(browser: Client) -> None:
    assert "A login for an image registry instead" in words(browser.get(at(ADD)))
    form = {"namespace": "default", "name": "pull", "host": "r.example.com:5000", **LOGIN}
    page = browser.post(at(ADD) + "?login", form, follow=True)
    assert "Login for registry r.example.com:5000" in words(page)
    assert registry_logins("default", {"r.example.com:5000"})["r.example.com:5000"] == ("puller", "letmepull")


def test_the_list_has_keys_registries_and_who_changed_it(browser: Client, vault: Vault) -> None:
    vault.put(password="hunter2", user="api")
    vault.put("pull", registry="r.example.com", **LOGIN)
    first, second = rows(browser.get(at(LIST)))
    assert "default/db" in first
    assert "password user" in first
    assert "by system" in first
    assert "r.example.com" in second
    assert len(rows(browser.get(at(LIST), {"q": "user"}))) == 2
    assert len(rows(browser.get(at(LIST), {"q": "r.example"}))) == 1


def test_a_value_is_set_and_a_key_removed(browser: Client, vault: Vault) -> None:
    vault.put(password="hunter2", user="api")
    pk = Secret.objects.get().pk
    page = browser.post(at("vault_secret_set", pk), {"key": "password", "value": "hunter3"}, follow=True)
    assert "The value of password was set." in words(page)
    assert (value("password"), value("user")) == ("hunter3", "api")
    assert buttons(page) == {"set", "remove-key", "registry", "remove"}
    page = browser.post(at("vault_secret_remove-key", pk), {"key": "user"}, follow=True)
    assert (value("password"), value("user")) == ("hunter3", None)
    assert "remove-key" not in buttons(page)


@pytest.mark.clause("AGT-15")
def test_the_registry_is_set_only_with_a_whole_login(browser: Client, vault: Vault) -> None:
    vault.put(password="hunter2")
    pk = Secret.objects.get().pk
    page = browser.post(at("vault_secret_registry", pk), {"registry": "r.example.com"})
    assert page.status_code == 422
    assert "missing: username" in words(page)
    browser.post(at("vault_secret_set", pk), {"key": "username", "value": "robot"})
    page = browser.post(at("vault_secret_registry", pk), {"registry": "r.example.com"}, follow=True)
    assert "default/db is the login for r.example.com." in words(page)


def test_before_a_delete_one_is_told_who_needs_it(browser: Client, vault: Vault) -> None:
    vault.device("edge-1")
    vault.put(password="hunter2")
    vault.rollout("db/password")
    pk = Secret.objects.get().pk
    asked = words(browser.get(at("vault_secret_remove", pk)))
    assert "It is needed by default/api. What runs keeps running" in asked
    assert "Needed by default/api" in words(browser.get(at("vault_secret_change", pk)))
    assert "The secret default/db is gone." in words(browser.post(at("vault_secret_remove", pk), follow=True))
    assert not Secret.objects.exists()


def test_a_refused_form_is_shown_without_what_was_typed_as_the_value(browser: Client, vault: Vault) -> None:
    vault.put(password="hunter2")
    pk = Secret.objects.get().pk
    typed = {"namespace": "default", "name": "db", "key": "a b", "value": "s3cr3t", "host": "r", "username": "u"}
    for address, status in {
        at(ADD): 409,
        at(ADD) + "?login": 200,
        at("vault_secret_set", pk): 422,
    }.items():
        page = browser.post(address, typed | {"password": ""})
        assert page.status_code == status, address
        assert "s3cr3t" not in page.content.decode()
        assert "hunter2" not in page.content.decode()
    page = browser.post(at(ADD) + "?login", typed | {"password": "s3cr3t"})
    assert page.status_code == 409
    assert "there is a secret default/db already; open it to set its values" in words(page)
    assert "s3cr3t" not in page.content.decode()
    page = browser.post(at(ADD), typed | {"name": "new", "value": "s3cr3t\x00", "key": "a"})
    assert page.status_code == 422
    assert "values.a: contains a NUL character" in words(page)
    assert "s3cr3t" not in page.content.decode()
