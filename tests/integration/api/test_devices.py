"""Devices, groups and enrolment tokens over REST."""

from __future__ import annotations

from datetime import timedelta

import pytest

from devices.models import Connectivity, Device, DeviceGroup, EnrolmentToken
from devices.services.tokens import hash_of
from fleet.core.models import AuditEntry
from tests.integration.api.rest import Rest, database, problem
from tests.integration.rollouts.world import START, World

pytestmark = [pytest.mark.clause("API-1"), pytest.mark.database]
TOKEN = {"name": "line-4", "useLimit": 5, "expiresInSeconds": 3600, "groups": ["lab"], "labels": {"site": "north"}}


def test_a_device_looks_like_a_kubernetes_object(viewer: Rest, world: World) -> None:
    device = world.device("edge-1", canary=True, role="analyzer")
    found = viewer.get("devices/edge-1/")
    assert (found["apiVersion"], found["kind"]) == ("fleet.nationtech.io/v1alpha1", "Device")
    assert found["metadata"] == {
        "name": "edge-1",
        "uid": str(device.uid),
        "creationTimestamp": "2026-12-01T14:00:00Z",
        "labels": {"device-id": "edge-1", "canary": "true", "role": "analyzer"},
    }
    assert found["spec"] == {"canary": True, "labels": {}, "agentUpgrade": None}
    assert found["status"]["connectivity"] == "online"
    assert found["status"]["lastSeen"] == "2026-12-01T14:00:00Z"
    assert found["status"]["groups"] == ["lab"]


def test_devices_are_filtered(viewer: Rest, world: World) -> None:
    world.device("edge-1", canary=True)
    world.goes(world.device("edge-2", groups=["plant"], role="camera"), Connectivity.OFFLINE)
    assert viewer.names("devices/") == ["edge-1", "edge-2"]
    assert viewer.names("devices/", connectivity="offline") == ["edge-2"]
    assert viewer.names("devices/", connectivity=["offline", "online"]) == ["edge-1", "edge-2"]
    assert viewer.names("devices/", canary="true") == ["edge-1"]
    assert viewer.names("devices/", group="plant") == ["edge-2"]
    assert viewer.names("devices/", search="2") == ["edge-2"]
    assert viewer.names("devices/", selector="role notin (camera)") == ["edge-1"]
    assert viewer.names("devices/", selector="device-id=edge-2,role") == ["edge-2"]


TARGETS = "namespaces/default/deployments/api/targets/"


@pytest.mark.parametrize(
    ("wrong", "allowed"),
    [
        (("devices/", "canary", "maybe"), "true, false"),
        (("devices/", "canary", "1"), "true, false"),
        (("devices/", "connectivity", "asleep"), "never, online, stale, offline"),
        (("deployments/", "phase", "Done"), "Pending, Canary, Releasing"),
        ((TARGETS, "canary", "maybe"), "true, false"),
        ((TARGETS, "connectivity", "x\x1b"), "never, online, stale, offline"),
        ((TARGETS, "state", "done"), "held, released, converged, failed, ended"),
    ],
)
def test_a_filter_that_means_nothing_is_refused_instead_of_showing_all(
    viewer: Rest, world: World, wrong: tuple[str, str, str], allowed: str
) -> None:
    world.device("edge-1")
    world.rollout()
    path, parameter, value = wrong
    found = problem(viewer.call("GET", path, **{parameter: value}), 422)
    assert [each["path"] for each in found["errors"]] == [parameter]
    assert f"found {value}; allowed: {allowed}" in found["detail"]
    assert len(viewer.get(path, **{parameter: allowed.split(", ")[1]})["results"]) <= 1


@pytest.mark.clause("DEV-4")
def test_an_operator_changes_canary_and_labels(operator: Rest, world: World) -> None:
    world.device("edge-1")
    found = operator.call("PATCH", "devices/edge-1/", {"canary": True, "labels": {"tier": "a"}}).json()
    assert found["spec"] == {"canary": True, "labels": {"tier": "a"}, "agentUpgrade": None}
    assert found["metadata"]["labels"]["tier"] == "a"
    assert found["metadata"]["labels"]["canary"] == "true"
    assert set(AuditEntry.objects.values_list("action", "actor_name")) == {
        ("mark-canary", "operator"),
        ("label", "operator"),
    }


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"canary": "yes"}, "canary"),
        ({"canary": 1}, "canary"),
        ({"labels": {"canary": "true"}}, "labels.canary"),
        ({"labels": {"a": 5}}, "labels.a"),
        ({"labels": {"a\x00b": "c"}}, "labels.a"),
        ({"labels": ["a"]}, "labels"),
        ({"canry": True}, "canry"),
        ({"canary": True, "labels": {"-": "bad"}}, "labels.-"),
    ],
)
def test_a_bad_change_is_refused_as_a_whole(operator: Rest, world: World, body: object, path: str) -> None:
    world.device("edge-1")
    before = database()
    answer = operator.call("PATCH", "devices/edge-1/", body)
    found = problem(answer, 422)
    assert [each["path"][: len(path)] for each in found["errors"]] == [path]
    assert database() == before


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"a":NaN}', b'{"a":' * 100_000, b'{"canary":true,"canary":false}'])
def test_what_is_no_json_object_is_refused(operator: Rest, world: World, body: bytes) -> None:
    world.device("edge-1")
    before = database()
    problem(operator.call("PATCH", "devices/edge-1/", body), 400)
    assert database() == before


def test_a_body_of_ten_megabytes_is_refused(operator: Rest, world: World) -> None:
    world.device("edge-1")
    body = b'{"labels": {"a": "' + b"x" * 10_000_000 + b'"}}'
    assert "allowed: 1048576" in problem(operator.call("PATCH", "devices/edge-1/", body), 413)["detail"]


@pytest.mark.clause("DEV-2")
def test_a_device_is_reset_and_forgotten(operator: Rest, world: World) -> None:
    device = world.device("edge-1")
    assert operator.call("POST", "devices/edge-1/reset-credential/").status_code == 204
    assert device.reenrolmentpermit.expires_at == START + timedelta(hours=24)
    assert operator.call("DELETE", "devices/edge-1/").status_code == 204
    assert not Device.objects.exists()
    problem(operator.call("GET", "devices/edge-1/"), 404)


def test_groups_are_made_filled_and_deleted(administrator: Rest, world: World) -> None:
    world.devices(["edge-1", "edge-2"], groups=[])
    created = administrator.call("POST", "groups/", {"name": "plant"})
    assert created.status_code == 201
    assert created.json() == {"name": "plant", "devices": [], "deployers": []}
    found = administrator.call("PUT", "groups/plant/devices/", {"devices": ["edge-2"]}).json()
    assert found["devices"] == ["edge-2"]
    assert administrator.get("groups/plant/") == found
    assert administrator.names("groups/", search="lan") == ["plant"]
    problem(administrator.call("POST", "groups/", {"name": "plant"}), 409)
    refused = problem(administrator.call("PUT", "groups/plant/devices/", {"devices": ["edge-1", "edge-7"]}), 404)
    assert "edge-7" in refused["detail"]
    assert administrator.get("groups/plant/") == found
    assert administrator.call("DELETE", "groups/plant/").status_code == 204
    assert not DeviceGroup.objects.exists()


@pytest.mark.clause("DEV-1")
def test_a_token_is_shown_once(administrator: Rest, world: World) -> None:
    world.group("lab")
    answer = administrator.call("POST", "enrolment-tokens/", TOKEN)
    assert answer.status_code == 201
    created = answer.json()
    assert created["expiresAt"] == "2026-12-01T15:00:00Z"
    assert (created["createdBy"], created["groups"], created["uses"]) == ("administrator", ["lab"], 0)
    assert EnrolmentToken.objects.get().token_hash == hash_of(created.pop("token"))
    assert administrator.get("enrolment-tokens/line-4/") == created
    assert administrator.get("enrolment-tokens/")["results"] == [created]
    problem(administrator.call("POST", "enrolment-tokens/", TOKEN), 409)


def test_a_token_is_revoked(administrator: Rest, world: World) -> None:
    world.group("lab")
    administrator.call("POST", "enrolment-tokens/", TOKEN)
    world.later(minutes=5)
    found = administrator.call("POST", "enrolment-tokens/line-4/revoke/").json()
    assert found["revokedAt"] is not None
    problem(administrator.call("POST", "enrolment-tokens/none/revoke/"), 404)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"groups": ["nowhere"]}, 404),
        ({"useLimit": 0}, 422),
        ({"useLimit": "5"}, 422),
        ({"useLimit": True}, 422),
        ({"expiresInSeconds": -1}, 422),
        ({"expiresInSeconds": 10**12}, 422),
        ({"labels": {"canary": "true"}}, 422),
        ({"name": "x" * 101}, 422),
        ({"name": "a\x00b"}, 422),
        ({"name": "\ud800"}, 422),
        ({"uses": 0}, 422),
    ],
)
def test_a_bad_token_is_refused(administrator: Rest, world: World, change: dict[str, object], status: int) -> None:
    world.group("lab")
    before = database()
    problem(administrator.call("POST", "enrolment-tokens/", {**TOKEN, **change}), status)
    assert database() == before
