"""A device gets a value only while a deployment that it shall run refers to it, and learns nothing else (AGT-10)."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from devices.models import DesiredItem
from rollouts import services
from tests.integration.vault.kit import LOGIN, Vault
from vault.services import secret_delete

pytestmark = [pytest.mark.clause("AGT-10"), pytest.mark.database]


def test_a_targeted_device_gets_what_its_deployment_refers_to(vault: Vault) -> None:
    vault.put(password="hunter2", user="api")
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password", "db/user")
    assert vault.gets(device, deployment, "db/password", "db/user") == {"db/password": "hunter2", "db/user": "api"}
    assert vault.gets(device, deployment, "db/user") == {"db/user": "api"}
    answer = vault.ask(device, deployment, "db/password")
    assert answer["Cache-Control"] == "no-store"


def test_the_init_containers_references_count_too(vault: Vault) -> None:
    vault.put(password="hunter2")
    device = vault.device("edge-1")
    manifest = vault.manifest("api")
    secret = {"name": "P", "secret": {"name": "db", "key": "password"}}
    init = {"name": "init", "image": "registry.example.com/init:1", "secret_env": [secret]}
    manifest["spec"]["score"]["data"]["init_container"] = init
    assert vault.gets(device, vault.world.rollout(manifest), "db/password") == {"db/password": "hunter2"}


def test_what_the_document_does_not_refer_to_is_not_given(vault: Vault) -> None:
    vault.put(password="hunter2", admin="root")
    vault.put("other", password="x")
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password")
    wanted = ("db/password", "db/admin", "other/password", "other/admin")
    assert vault.gets(device, deployment, *wanted) == {"db/password": "hunter2"}


def test_a_device_that_is_no_target_gets_nothing(vault: Vault) -> None:
    vault.put(password="hunter2")
    vault.device("edge-1")
    stranger = vault.device("edge-2", role="camera")
    deployment = vault.rollout("db/password")
    assert vault.gets(stranger, deployment, "db/password") == {}


def test_a_held_target_gets_nothing_until_it_is_released(vault: Vault) -> None:
    vault.put(password="hunter2")
    canary, held = vault.device("edge-1", canary=True), vault.device("edge-2")
    deployment = vault.rollout("db/password")
    assert vault.gets(canary, deployment, "db/password") == {"db/password": "hunter2"}
    assert vault.gets(held, deployment, "db/password") == {}
    vault.world.says(canary, deployment, "converged")
    vault.world.drain()
    vault.world.evaluate(deployment)
    assert vault.gets(held, deployment, "db/password") == {"db/password": "hunter2"}


def test_a_held_target_keeps_what_its_older_revision_refers_to(vault: Vault) -> None:
    """It still runs that one; what only the new revision needs is for those who have it."""
    vault.put(password="hunter2", token="t0k3n")
    canary, held = vault.device("edge-1", canary=True), vault.device("edge-2")
    deployment = vault.rollout("db/password")
    vault.world.says(canary, deployment, "converged")
    vault.world.drain()
    vault.world.evaluate(deployment)
    vault.rollout("db/token")
    assert vault.gets(canary, deployment, "db/password", "db/token") == {"db/token": "t0k3n"}
    assert vault.gets(held, deployment, "db/password", "db/token") == {"db/password": "hunter2"}


def test_a_deployment_that_is_withdrawn_ends_the_right(vault: Vault) -> None:
    vault.put(password="hunter2")
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password")
    services.deployment_delete(deployment=deployment, actor=None)
    services.deployment_evaluate_removal(deployment_id=deployment.pk)
    assert DesiredItem.objects.get().remove
    assert vault.gets(device, deployment, "db/password") == {}


def test_another_namespaces_secret_of_the_same_name_is_another(vault: Vault) -> None:
    vault.put(namespace="shop", password="of the shop")
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password")
    assert vault.gets(device, deployment, "db/password") == {}
    shops = vault.rollout("db/password", name="web", namespace="shop")
    assert vault.gets(device, shops, "db/password") == {"db/password": "of the shop"}


def test_a_deployment_that_was_made_again_is_another(vault: Vault) -> None:
    vault.put(password="hunter2")
    device = vault.device("edge-1")
    old = vault.rollout("db/password")
    services.deployment_delete(deployment=old, actor=None)
    services.deployment_evaluate_removal(deployment_id=old.pk)
    vault.world.says(device, old, "removed")
    vault.world.drain()
    new = vault.rollout("db/password")
    assert new.uid != old.uid
    assert vault.gets(device, str(old.uid), "db/password") == {}
    assert vault.gets(device, new, "db/password") == {"db/password": "hunter2"}


@pytest.mark.parametrize("uid", ["", "api", "default/api", "\x00", "é", "{uid}", "urn:uuid:{uid}", "{uid} "])
def test_what_is_no_uid_is_no_deployment(vault: Vault, uid: str) -> None:
    vault.put(password="hunter2")
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password")
    asked = uid.replace("{uid}", str(deployment.uid).upper() if uid == "{uid}" else str(deployment.uid))
    assert vault.gets(device, asked, "db/password") == {}


def test_what_does_not_exist_and_what_is_forbidden_look_the_same(vault: Vault) -> None:
    vault.put(admin="root")
    device = vault.device("edge-1")
    deployment = vault.rollout("gone/password")
    missing, forbidden = (vault.ask(device, deployment, ref) for ref in ("gone/password", "db/admin"))
    assert missing.status_code == forbidden.status_code == 200
    assert missing.content == forbidden.content == b"{}"
    assert missing.headers == forbidden.headers


def test_a_request_that_goes_too_far_is_in_the_log(vault: Vault, caplog: pytest.LogCaptureFixture) -> None:
    vault.put(admin="root", password="hunter2")
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password")
    with caplog.at_level(logging.INFO, logger="rollouts.agent_api"):
        vault.ask(device, deployment, "db/password")
        assert not caplog.records
        vault.ask(device, deployment, "db/admin", registries=["evil.example.com"])
    (record,) = caplog.records
    assert "db/admin, evil.example.com" in record.getMessage()
    assert (record.device, record.deployment) == (device.pk, str(deployment.uid))  # type: ignore[attr-defined]


def test_without_a_credential_nothing_is_told(vault: Vault) -> None:
    vault.put(password="hunter2")
    vault.device("edge-1")
    deployment = vault.rollout("db/password")
    assert vault.ask("guess", deployment, "db/password").status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"[]", 422),
        (b'{"deployment":"x","references":[{"name":"../db","key":"password"}]}', 422),
        (b'{"deployment":"x","references":[{"name":"db","key":".."}]}', 422),
        (b'{"deployment":"' + b"x" * 100 + b'"}', 422),
        (b" " * 300_000, 413),
    ],
)
def test_a_bad_request_is_refused(vault: Vault, body: bytes, status: int) -> None:
    device = vault.device("edge-1")
    headers = {"Authorization": f"Bearer {device}"}
    answer = vault.client.post("/api/agent/v1/secrets", body, content_type="application/json", headers=headers)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.clause("AGT-15")
def test_the_login_for_a_registry_is_given_where_an_image_comes_from_it(vault: Vault) -> None:
    vault.put("pull", registry="Registry.Example.com:5000", **LOGIN)
    vault.put("elsewhere", registry="other.example.com", **LOGIN)
    vault.put("pull", namespace="shop", registry="registry.example.com:5000", username="shop", password="x")
    device, stranger = vault.device("edge-1"), vault.device("edge-2", role="camera")
    deployment = vault.rollout()
    own, foreign = "registry.example.com:5000", "other.example.com"
    assert vault.logins(device, deployment, own, foreign) == {own: ("puller", "letmepull")}
    assert vault.logins(device, deployment, own.upper()) == {own.upper(): ("puller", "letmepull")}
    assert vault.logins(device, deployment, "registry.example.com") == {}
    assert vault.logins(stranger, deployment, own) == {}


def test_a_deleted_secret_is_gone_for_devices(vault: Vault) -> None:
    vault.put(password="hunter2")
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password")
    secret_delete(namespace="default", name="db", actor=None)
    assert vault.gets(device, deployment, "db/password") == {}


def test_a_value_that_no_key_opens_is_left_out_and_named(
    vault: Vault, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    vault.put(password="hunter2")
    vault.put("pull", registry="registry.example.com:5000", **LOGIN)
    device = vault.device("edge-1")
    deployment = vault.rollout("db/password", "new/token")
    settings.FLEET_SECRET_KEYS = ["another-key-for-tests-another-key-for-tests="]
    vault.put("new", token="t0k3n")
    assert vault.gets(device, deployment, "db/password", "new/token") == {"new/token": "t0k3n"}
    assert vault.logins(device, deployment, "registry.example.com:5000") == {}
    assert "decrypts the secret value default/db/password" in caplog.text
    settings.FLEET_SECRET_KEYS = []
    assert vault.gets(device, deployment, "db/password", "new/token") == {}


def test_any_number_of_references_takes_four_queries(vault: Vault) -> None:
    device = vault.device("edge-1")
    taken = []
    for number in (1, 40):
        names = [f"s{index}" for index in range(number)]
        for name in names:
            vault.put(name, a="1", b="2")
        vault.put("pull", registry="registry.example.com:5000", **LOGIN)
        refs = [f"{name}/{key}" for name in names for key in "ab"]
        deployment = vault.rollout(*refs, name=f"app-{number}")
        with CaptureQueriesContext(connection) as queries:
            answer = vault.ask(device, deployment, *refs, registries=["registry.example.com:5000"])
        assert len(answer.json()["values"]) == 2 * number
        assert len(answer.json()["registries"]) == 1
        taken.append(len(queries))
    assert taken == [4, 4]
