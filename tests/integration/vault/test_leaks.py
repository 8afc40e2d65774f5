"""A recognisable value goes through every path of the server, and is then looked for everywhere (AGT-10)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.test import Client
from pytest_django import Settings

from devices.models import Device
from fleet.core import audit
from fleet.core.rest import Strict
from rollouts import agent_api
from rollouts.models import Deployment
from tests.integration.admin.pages import at
from tests.integration.api.rest import Rest
from tests.integration.vault.kit import Vault
from vault.admin.forms import ValueField
from vault.models import Secret
from vault.services import secrets_rotate

pytestmark = [pytest.mark.clause("AGT-10"), pytest.mark.database]
VALUE = "tr3asure-of-the-vault"
DB = "namespaces/default/secrets/db/"
LOGIN = {"username": "puller", "password": VALUE}
REGISTRY = "registry.example.com:5000"


@pytest.fixture
def rest(as_role: Callable[[str], Rest], vault: Vault) -> Rest:
    return as_role("administrator")


@pytest.fixture
def browser(rest: Rest, vault: Vault) -> Client:
    """Of the same person; an error is a page and not an exception of the test's."""
    from django.contrib.auth.models import User  # noqa: PLC0415

    User.objects.update(is_staff=True)
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.get())
    return client


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Each line of each logger, the database's own with every statement and parameter among them."""
    connection.force_debug_cursor = True
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="django.db.backends"):
        yield caplog
    connection.force_debug_cursor = False


def stored() -> Iterator[tuple[str, str]]:
    """Every column of every row of the database, as text, with its table."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608
            for row in cursor.fetchall():
                for column in row:
                    yield table, bytes(column).decode(errors="replace") if _is_binary(column) else str(column)


def _is_binary(column: Any) -> bool:
    return isinstance(column, bytes | memoryview)


def by_every_path(vault: Vault, rest: Rest, browser: Client) -> tuple[Device, Deployment, list[bytes]]:
    """Put the value in by each entrance; the answers."""
    device = vault.device("edge-1")
    answers = [
        rest.call("PUT", DB, {"values": {"rest": VALUE}}),
        rest.call("PATCH", DB, {"values": {"merged": VALUE}}),
        rest.call("PUT", "namespaces/default/secrets/pull/", {"values": LOGIN, "registry": REGISTRY}),
    ]
    typed = {"namespace": "default", "name": "web", "key": "typed", "value": VALUE}
    answers.append(browser.post(at("vault_secret_add"), typed, follow=True))
    pk = Secret.objects.get(name="web").pk
    answers.append(browser.post(at("vault_secret_set", pk), {"key": "again", "value": VALUE}, follow=True))
    deployment = vault.rollout("db/rest", "db/merged", "web/typed", "web/again")
    return device, deployment, [answer.content for answer in answers]


def test_the_value_is_nowhere_but_in_the_devices_answer(
    vault: Vault, rest: Rest, browser: Client, everything_logged: pytest.LogCaptureFixture, settings: Settings
) -> None:
    device, deployment, shown = by_every_path(vault, rest, browser)
    refs = ("db/rest", "db/merged", "web/typed", "web/again")
    assert vault.gets(device, deployment, *refs) == dict.fromkeys(refs, VALUE)
    assert vault.logins(device, deployment, REGISTRY) == {REGISTRY: ("puller", VALUE)}
    settings.FLEET_SECRET_KEYS = [Fernet.generate_key().decode(), *settings.FLEET_SECRET_KEYS]
    assert secrets_rotate().done == 6
    shown += [rest.call("GET", path).content for path in (DB, "namespaces/default/secrets/", "events/", "schema/")]
    shown.append(rest.call("GET", "namespaces/default/deployments/api/").content)
    pks = list(Secret.objects.values_list("pk", flat=True))
    views = [("vault_secret_change", pk) for pk in pks] + [("vault_secret_set", pk) for pk in pks]
    lists = ("vault_secret_changelist", "core_auditentry_changelist", "core_event_changelist", "index")
    shown += [browser.get(at(view, *args)).content for view, *args in [*views, *((name,) for name in lists)]]
    assert not any(VALUE.encode() in page for page in shown)
    assert "INSERT INTO" in everything_logged.text
    assert VALUE not in everything_logged.text
    tables = {table for table, _ in stored()}
    assert {"vault_secretentry", "core_auditentry", "devices_desireddocument", "rollouts_revision"} <= tables
    assert [table for table, text in stored() if VALUE in text] == []


def fail(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("broken on purpose")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing fails where values are at hand, and so does answering a device."""
    monkeypatch.setattr(audit, "record", fail)
    monkeypatch.setattr(agent_api, "_note_denied", fail)


@pytest.mark.parametrize("debug", [False, True])
def test_an_error_page_has_no_value_in_it(
    vault: Vault,
    browser: Client,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    *,
    debug: bool,
    request: pytest.FixtureRequest,
) -> None:
    vault.put(password=VALUE)
    vault.put("pull", registry=REGISTRY, **LOGIN)
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password")
    request.getfixturevalue("broken")
    settings.DEBUG = debug
    pk = Secret.objects.get(name="db").pk
    typed = {"namespace": "default", "name": "web", "key": "typed", "value": VALUE}
    vault.client.raise_request_exception = False
    body = {"values": {"password": VALUE}}
    pages = [
        browser.put(f"/api/v1/{DB}", body, content_type="application/json"),
        browser.patch(f"/api/v1/{DB}", body, content_type="application/json"),
        browser.post(at("vault_secret_add"), typed),
        browser.post(at("vault_secret_add") + "?login", {**typed, **LOGIN, "host": "other.example.com"}),
        browser.post(at("vault_secret_set", pk), typed),
        vault.ask(device, deployment, "db/password", registries=[REGISTRY]),
    ]
    with pytest.MonkeyPatch.context() as patch:  # where frames of libraries hold what was sent
        patch.setattr(Strict, "to_internal_value", fail)
        patch.setattr(ValueField, "validate", fail)
        pages.append(browser.put(f"/api/v1/{DB}", body, content_type="application/json"))
        pages.append(browser.post(at("vault_secret_set", pk), typed))
    for page in pages:
        assert page.status_code == 500
        assert ("broken on purpose" in page.content.decode()) is debug
        assert VALUE not in page.content.decode()
    assert "broken on purpose" in caplog.text
    assert VALUE not in caplog.text
