"""Who may do what over REST (ADM-2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from fleet.core.door import admit
from fleet.core.kinds import manifests_apply
from tests.integration.api.rest import Rest, database, problem
from tests.integration.rollouts.world import World
from vault.services import secret_put

pytestmark = pytest.mark.clause("ADM-2", "API-1")
ONE = "namespaces/default/deployments/api/"
RUN = "namespaces/default/taskruns/upgrade-device-1/"
SCHEDULE = "namespaces/default/taskschedules/upgrade-lab-weekly/"
GOOD = Path(__file__).parents[2] / "contract" / "manifests" / "good"
TASKRUN, TASKSCHEDULE = GOOD / "taskrun.yaml", GOOD / "taskschedule.yaml"
READS = {
    "deployments/": "rollouts.view_deployment",
    ONE: "rollouts.view_deployment",
    f"{ONE}targets/": "rollouts.view_deployment",
    f"{ONE}revisions/": "rollouts.view_deployment",
    f"{ONE}manifest/": "rollouts.view_deployment",
    "devices/": "devices.view_device",
    "devices/edge-1/": "devices.view_device",
    "devices/edge-1/deployments/": "devices.view_device",
    "taskruns/": "tasks.view_taskrun",
    RUN: "tasks.view_taskrun",
    f"{RUN}targets/": "tasks.view_taskrun",
    "taskschedules/": "tasks.view_taskschedule",
    SCHEDULE: "tasks.view_taskschedule",
    "events/": "core.view_event",
    "groups/": "devices.view_devicegroup",
    "groups/lab/": "devices.view_devicegroup",
    "enrolment-tokens/": "devices.view_enrolmenttoken",
    "namespaces/default/secrets/": "vault.view_secret",
    "namespaces/default/secrets/db/": "vault.view_secret",
}
OPERATES = {
    ("POST", "manifests/"): "rollouts.add_deployment",
    ("DELETE", ONE): "rollouts.delete_deployment",
    ("POST", f"{ONE}retarget/"): "rollouts.retarget_deployment",
    ("POST", f"{ONE}end/"): "rollouts.end_deployment",
    ("POST", f"{ONE}forget-device/"): "rollouts.forget_device_deployment",
    ("POST", f"{ONE}logs/"): "rollouts.read_logs",
    ("GET", f"{ONE}logs/none/"): "rollouts.read_logs",
    ("DELETE", RUN): "tasks.delete_taskrun",
    ("POST", f"{RUN}end/"): "tasks.end_taskrun",
    ("POST", f"{RUN}recreate/"): "tasks.add_taskrun",
    ("POST", f"{RUN}give-up/"): "upgrades.give_up_attempt",
    ("DELETE", SCHEDULE): "tasks.delete_taskschedule",
    ("POST", f"{SCHEDULE}suspend/"): "tasks.change_taskschedule",
    ("POST", f"{SCHEDULE}resume/"): "tasks.change_taskschedule",
    ("POST", f"{SCHEDULE}run/"): "tasks.add_taskrun",
    ("PATCH", "devices/edge-1/"): "devices.change_device",
    ("DELETE", "devices/edge-1/"): "devices.delete_device",
    ("POST", "devices/edge-1/reset-credential/"): "devices.change_device",
    ("PUT", "devices/edge-1/agent-upgrade/"): "upgrades.change_desiredagent",
    ("DELETE", "devices/edge-1/agent-upgrade/"): "upgrades.change_desiredagent",
    ("POST", "devices/edge-1/agent-upgrade/retry/"): "upgrades.change_desiredagent",
    ("POST", "devices/edge-1/agent-upgrade/give-up/"): "upgrades.give_up_attempt",
    ("PUT", "namespaces/default/secrets/db/"): "vault.add_secret",
    ("PATCH", "namespaces/default/secrets/db/"): "vault.add_secret",
    ("DELETE", "namespaces/default/secrets/db/"): "vault.delete_secret",
}
ADMINISTERS = {
    ("POST", "groups/"): "devices.add_devicegroup",
    ("DELETE", "groups/lab/"): "devices.delete_devicegroup",
    ("PUT", "groups/lab/devices/"): "devices.change_devicegroup",
    ("POST", "enrolment-tokens/"): "devices.add_enrolmenttoken",
    ("POST", "enrolment-tokens/any/revoke/"): "devices.change_enrolmenttoken",
}


@pytest.fixture(autouse=True)
def _fleet(world: World) -> None:
    world.device("edge-1")
    world.rollout()
    for path in (TASKRUN, TASKSCHEDULE):
        manifests_apply(manifests=admit(path.read_bytes()), actor=None)
    secret_put(namespace="default", name="db", values={"a": "1"}, registry="", actor=None)


def refused(rest: Rest, calls: dict[tuple[str, str], str]) -> None:
    before = database()
    for (method, path), permission in calls.items():
        assert permission in problem(rest.call(method, path, {}), 403)["detail"]
    assert database() == before


def test_without_a_token_nothing_is_shown_or_done() -> None:
    before = database()
    for method, path in [*(("GET", path) for path in READS), *OPERATES, *ADMINISTERS]:
        answer = Rest().call(method, path, {})
        problem(answer, 401)
        assert answer.headers["WWW-Authenticate"] == "Token"
    assert database() == before


def test_a_wrong_token_is_as_good_as_none() -> None:
    problem(Rest("0" * 64).call("GET", "devices/"), 401)


def test_without_a_role_the_missing_permission_is_named(as_role: Callable[[str], Rest]) -> None:
    nobody = as_role("")
    refused(nobody, {("GET", path): permission for path, permission in READS.items()})
    assert {nobody.call("HEAD", path).status_code for path in READS} == {403}
    refused(nobody, {**OPERATES, **ADMINISTERS})


def test_a_viewer_sees_everything_and_changes_nothing(viewer: Rest) -> None:
    for path in READS:
        assert viewer.call("GET", path).status_code == 200
    refused(viewer, {**OPERATES, **ADMINISTERS})


def test_an_operator_operates_and_does_not_administer(operator: Rest) -> None:
    refused(operator, ADMINISTERS)
    assert operator.call("PATCH", "devices/edge-1/", {"canary": True}).status_code == 200
    assert operator.call("POST", f"{ONE}end/").status_code == 200
    assert operator.call("DELETE", ONE).status_code == 202
    assert operator.call("DELETE", "devices/edge-1/").status_code == 204
    assert operator.call("PATCH", "namespaces/default/secrets/db/", {"values": {"b": "2"}}).status_code == 200
    assert operator.call("DELETE", "namespaces/default/secrets/db/").status_code == 204


@pytest.mark.clause("DEP-7")
def test_an_operator_deploys_to_the_groups_of_their_role_alone(operator: Rest, world: World) -> None:
    world.group("lab").deployers.remove(Group.objects.get(name="operator"))
    before = database()
    for path in ("manifests/", f"{ONE}retarget/"):
        found = problem(operator.call("POST", path, world.manifest()), 403)
        assert found["detail"].startswith("operator may not deploy to group lab; an administrator can add")
    assert database() == before


def test_a_user_who_was_deactivated_is_out(operator: Rest) -> None:
    User.objects.update(is_active=False)
    problem(operator.call("GET", "devices/"), 401)


def test_a_session_of_the_admin_is_taken_and_guarded_against_foreign_pages(operator: Rest) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.get(username="operator"))
    assert browser.get("/api/v1/devices/").status_code == 200
    refusal = browser.delete("/api/v1/devices/edge-1/")
    assert "CSRF" in problem(refusal, 403)["detail"]


def test_a_method_that_does_not_exist_is_refused(administrator: Rest) -> None:
    problem(administrator.call("PUT", "devices/edge-1/", {}), 405)


@pytest.mark.parametrize("path", ["planets/", "devices", "devices/edge-1", ""])
def test_an_address_that_does_not_exist_is_a_problem_too(path: str) -> None:
    assert "/api/v1/schema/" in problem(Rest().call("GET", path), 404)["detail"]


def test_another_version_of_the_api_does_not_exist(administrator: Rest) -> None:
    assert Client().get("/api/v2/devices/").status_code == 404
