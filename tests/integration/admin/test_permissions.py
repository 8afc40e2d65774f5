"""No page lets somebody do what their role does not allow, and none changes anything when it is only looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from devices.models import Device, DeviceGroup, EnrolmentToken
from fleet.core.adminkit.pages import ServiceAdmin
from fleet.core.door import admit
from fleet.core.kinds import manifests_apply
from fleet.core.models import AuditEntry
from releases.services import release_note
from releases.services.shelving import Elsewhere
from rollouts.models import Deployment
from tasks.models import TaskRun, TaskSchedule
from tasks.services import schedule_apply
from tests.integration.admin.pages import at, buttons
from tests.integration.rollouts.world import World
from upgrades.models import Attempt, State
from vault.models import Secret, SecretEntry
from vault.services import secret_put

pytestmark = pytest.mark.clause("ADM-1")
GOOD = Path(__file__).parents[2] / "contract" / "manifests" / "good"
TASKRUN, SCHEDULE = GOOD / "taskrun.yaml", GOOD / "taskschedule.yaml"
RELEASE = GOOD / "agentrelease.yaml"

OPERATIONS = [
    (f"{model._meta.app_label}_{model._meta.model_name}", operation.name)
    for model, site in admin.site._registry.items()
    if isinstance(site, ServiceAdmin)
    for operation in site.operations
]


@dataclass
class Objects:
    """One of each; ``pk`` by the model's URL name."""

    pk: dict[str, int]


@pytest.fixture
def objects(world: World) -> Objects:
    device = world.device("edge-1")
    deployment = world.rollout()
    token = EnrolmentToken.objects.create(
        name="t", token_hash="0" * 64, created_at=world.now, expires_at=world.now, use_limit=1
    )
    secret = secret_put(namespace="default", name="db", values={"a": "1", "b": "2"}, registry="", actor=None)
    (run,) = manifests_apply(manifests=admit(TASKRUN.read_bytes()), actor=None)
    assert run.pk is not None
    (rollout,) = manifests_apply(manifests=admit(RELEASE.read_bytes()), actor=None)
    assert rollout.pk is not None
    shelved = release_note(
        elsewhere=Elsewhere("1.2.3", "amd64", "ab" * 32, 1000, "https://example.com/a"),
        actor=None,
    )
    schedule = schedule_apply(manifest=admit(SCHEDULE.read_bytes())[0], actor=None)
    assert schedule.pk is not None
    times = {"begin_until": world.now, "offered_at": world.now}
    attempt = Attempt.objects.create(
        device=device,
        device_name="edge-1",
        executor="systemUpgradeV1",
        title="TaskRun a/b",
        state=State.RUNNING,
        **times,
    )
    pks = {
        "devices_device": device.pk,
        "rollouts_deployment": deployment.pk,
        "devices_enrolmenttoken": token.pk,
        "devices_devicegroup": world.group().pk,
        "vault_secret": secret.pk,
        "tasks_taskrun": run.pk,
        "tasks_agentrelease": rollout.pk,
        "releases_shelvedrelease": shelved.pk,
        "tasks_taskschedule": schedule.pk,
        "upgrades_attempt": attempt.pk,
    }
    return Objects(pks)


def _counts() -> list[int]:
    kept = (Device, DeviceGroup, EnrolmentToken, Deployment, Secret, SecretEntry, TaskRun, TaskSchedule, AuditEntry)
    return [model.objects.count() for model in kept]


@pytest.mark.parametrize(("model", "operation"), OPERATIONS)
def test_a_viewer_is_refused_every_operation(viewer: Client, objects: Objects, model: str, operation: str) -> None:
    before = _counts()
    address = at(f"{model}_{operation}", objects.pk[model])
    assert viewer.get(address).status_code == 403
    assert viewer.post(address).status_code == 403
    assert _counts() == before


@pytest.mark.parametrize("model", sorted({model for model, _ in OPERATIONS}))
def test_a_viewer_sees_the_page_and_no_buttons(viewer: Client, objects: Objects, model: str) -> None:
    page = viewer.get(at(f"{model}_change", objects.pk[model]))
    assert page.status_code == 200
    assert not buttons(page)


@pytest.mark.parametrize(("model", "operation"), OPERATIONS)
def test_looking_at_a_confirmation_changes_nothing(
    administrator: Client, objects: Objects, model: str, operation: str
) -> None:
    before = _counts()
    assert administrator.get(at(f"{model}_{operation}", objects.pk[model])).status_code == 200
    assert _counts() == before


@pytest.mark.parametrize(("model", "operation"), OPERATIONS)
def test_a_forged_form_of_another_site_is_refused(objects: Objects, model: str, operation: str) -> None:
    assert Client(enforce_csrf_checks=True).post(at(f"{model}_{operation}", objects.pk[model])).status_code == 403


@pytest.mark.django_db
def test_the_bare_address_leads_to_the_overview(client: Client) -> None:
    assert client.get("/")["Location"] == at("index")


@pytest.mark.parametrize("view", ["index", "devices_device_changelist", "rollouts_deployment_changelist"])
@pytest.mark.django_db
def test_nobody_sees_anything_without_signing_in(client: Client, view: str) -> None:
    answer = client.get(at(view))
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("admin:login"))


@pytest.mark.parametrize(
    "view",
    [
        "devices_device_add",
        "devices_enrolmenttoken_add",
        "devices_devicegroup_add",
        "rollouts_deployment_add",
        "tasks_taskrun_add",
        "tasks_taskschedule_add",
        "upgrades_attempt_add",
        "vault_secret_add",
    ],
)
def test_a_viewer_adds_nothing(viewer: Client, view: str) -> None:
    assert viewer.get(at(view)).status_code == 403
    assert viewer.post(at(view), {"name": "x"}).status_code == 403


@pytest.mark.parametrize(
    "model",
    [
        "devices_device",
        "rollouts_deployment",
        "tasks_taskrun",
        "upgrades_attempt",
        "vault_secret",
        "core_auditentry",
        "core_event",
    ],
)
def test_the_stock_pages_that_write_models_are_closed_to_administrators_too(
    administrator: Client, objects: Objects, model: str
) -> None:
    pk = objects.pk.get(model, 1)
    assert administrator.post(at(f"{model}_delete", pk), {"post": "yes"}).status_code in (302, 403)
    assert administrator.post(at(f"{model}_change", pk), {"name": "changed"}).status_code in (200, 302, 403)
    assert not Device.objects.filter(name="changed").exists()
    assert Device.objects.filter(name="edge-1").exists()


def test_devices_are_not_added_by_hand(administrator: Client) -> None:
    assert administrator.get(at("devices_device_add")).status_code == 403


def test_an_object_that_is_not_there_is_not_found(administrator: Client) -> None:
    for model in (
        "devices_device",
        "rollouts_deployment",
        "devices_enrolmenttoken",
        "devices_devicegroup",
        "vault_secret",
    ):
        assert administrator.get(at(f"{model}_change", 987654)).status_code == 404
        assert administrator.get(at(f"{model}_change", "no-number")).status_code == 404
