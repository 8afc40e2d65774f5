"""The devices' pages."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from devices.models import Connectivity, Device
from fleet.core.models import AuditEntry, Event
from tests.integration.admin.pages import at, buttons, rows, words
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("ADM-1")
LIST = "devices_device_changelist"


def test_an_empty_fleet_says_what_to_do_next(administrator: Client) -> None:
    page = administrator.get(at(LIST))
    assert "No device has enrolled yet" in words(page)
    assert at("devices_enrolmenttoken_changelist") in page.content.decode()


def test_a_search_without_result_says_how_to_see_all(viewer: Client, world: World) -> None:
    world.device("edge-1")
    text = words(viewer.get(at(LIST), {"q": "nothing-like-it"}))
    assert "Nothing matches" in text
    assert "No device has enrolled yet" not in text


def test_the_list_shows_how_each_device_is(viewer: Client, world: World) -> None:
    device = world.device("edge-1", canary=True, role="analyzer", site="berlin")
    Device.objects.filter(pk=device.pk).update(agent_version="0.1.0", podman_version="4.3.1", architecture="arm64")
    world.goes(device, Connectivity.OFFLINE)
    world.later(minutes=7)
    (row,) = rows(viewer.get(at(LIST)))
    for words_ in ("edge-1", "canary", "offline", "for 7 min", "site=berlin", "lab", "agent 0.1.0", "Podman 4.3.1"):
        assert words_ in row
    assert "device-id=" not in row  # says nothing that the name does not


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"heartbeat__connectivity__exact": "offline"}, {"edge-2"}),
        ({"canary__exact": "1"}, {"edge-1"}),
        ({"architecture": "arm64"}, {"edge-3"}),
        ({"q": "edge-3"}, {"edge-3"}),
        ({"q": "berlin"}, {"edge-2"}),
    ],
)
def test_the_list_can_be_narrowed(viewer: Client, world: World, query: dict[str, str], expected: set[str]) -> None:
    world.device("edge-1", canary=True)
    world.goes(world.device("edge-2", site="berlin"), Connectivity.OFFLINE)
    Device.objects.filter(pk=world.device("edge-3").pk).update(architecture="arm64")
    assert {row.split()[0] for row in rows(viewer.get(at(LIST), query))} == expected


def test_the_list_can_be_narrowed_to_a_group(viewer: Client, world: World) -> None:
    world.device("edge-1", groups=["lab"])
    world.device("edge-2", groups=["production"])
    group = world.group("production")
    assert [row.split()[0] for row in rows(viewer.get(at(LIST), {"groups__id__exact": group.pk}))] == ["edge-2"]


def test_the_page_says_who_set_each_label(viewer: Client, world: World) -> None:
    device = world.device("edge-1")
    Device.objects.filter(pk=device.pk).update(
        operator_labels={"site": "berlin"},
        reported_labels={"site": "unknown", "role": "analyzer"},
        labels={"device-id": "edge-1", "canary": "false", "site": "berlin", "role": "analyzer"},
    )
    text = words(viewer.get(at("devices_device_change", device.pk)))
    assert "site berlin operator unknown reported by the device" in text
    assert "role analyzer device" in text
    assert "device-id edge-1 control plane" in text


def test_the_page_shows_desired_against_observed(viewer: Client, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "failed", "port 8080/tcp is taken")
    world.drain()
    text = words(viewer.get(at("devices_device_change", device.pk)))
    assert "default/api yes" in text
    assert "port 8080/tcp is taken" in text


def test_what_a_device_says_is_wrong_with_itself_is_on_top(viewer: Client, world: World) -> None:
    device = world.device("edge-1")
    problem = {"reason": "StateSetAside", "message": "state.json <b>was torn</b>"}
    Device.objects.filter(pk=device.pk).update(problems=[problem])
    page = viewer.get(at("devices_device_change", device.pk))
    assert "StateSetAside" in words(page)
    assert "<b>was torn</b>" not in page.content.decode()


def test_marking_a_canary_is_confirmed_done_and_audited(operator: Client, world: World) -> None:
    device = world.device("edge-1")
    address = at("devices_device_mark-canary", device.pk)
    assert "Make edge-1 a canary?" in words(operator.get(address))
    done = operator.post(address, follow=True)
    device.refresh_from_db()
    assert device.canary
    assert device.labels["canary"] == "true"
    assert "edge-1 is now a canary." in words(done)
    assert "unmark-canary" in buttons(done)
    assert AuditEntry.objects.get(object_name="edge-1").actor == User.objects.get(username="operator")


def test_labels_are_edited_as_lines(operator: Client, world: World) -> None:
    device = world.device("edge-1")
    operator.post(at("devices_device_labels", device.pk), {"labels": "site = berlin\n\nrole=camera\n"})
    device.refresh_from_db()
    assert device.operator_labels == {"site": "berlin", "role": "camera"}
    assert device.labels["role"] == "camera"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("site", "Line 1 is 'site'; allowed: key=value"), ("a=1\na=2", "Line 2 sets 'a' a second time")],
)
def test_labels_that_cannot_be_read_are_said_with_their_line(
    operator: Client, world: World, text: str, complaint: str
) -> None:
    device = world.device("edge-1")
    assert complaint in words(operator.post(at("devices_device_labels", device.pk), {"labels": text}))


@pytest.mark.parametrize("text", ["canary=true", "device-id=edge-2", "site=not a value", "-bad=1"])
def test_labels_that_the_service_refuses_change_nothing(operator: Client, world: World, text: str) -> None:
    device = world.device("edge-1")
    page = operator.post(at("devices_device_labels", device.pk), {"labels": text})
    assert page.status_code == 422
    assert "Nothing was changed." in words(page)
    device.refresh_from_db()
    assert device.operator_labels == {}


def test_groups_are_an_administrators_matter(operator: Client, administrator: Client, world: World) -> None:
    device = world.device("edge-1", groups=["lab"])
    address = at("devices_device_groups", device.pk)
    production = world.group("production")
    assert operator.post(address, {"groups": [production.pk]}).status_code == 403
    assert administrator.post(address, {"groups": [production.pk]}).status_code == 302
    assert [group.name for group in device.groups.all()] == ["production"]


@pytest.mark.clause("DEP-12")
def test_forgetting_a_canary_names_the_gate_that_stays_shut(operator: Client, world: World) -> None:
    canary = world.device("edge-1", canary=True)
    world.device("edge-2")
    world.rollout()
    text = words(operator.get(at("devices_device_forget", canary.pk)))
    assert "It is a canary of the rollout default/api" in text
    assert "keeps the gate shut" in text


@pytest.mark.clause("DEP-14")
def test_forgetting_a_device_frees_a_deletion_and_is_audited(operator: Client, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    operator.post(at("rollouts_deployment_remove", deployment.pk))
    assert "The deletion of default/api no longer waits" in words(operator.get(at("devices_device_forget", device.pk)))
    done = operator.post(at("devices_device_forget", device.pk), follow=True)
    assert "edge-1 is forgotten." in words(done)
    assert not Device.objects.exists()
    assert AuditEntry.objects.filter(object_name="edge-1", actor_name="operator").exists()


def test_resetting_a_credential_revokes_it_at_once(operator: Client, world: World) -> None:
    device = world.device("edge-1")
    device.credentials.create(token_hash="1" * 64, created_at=world.now)
    assert "ends at once" in words(operator.get(at("devices_device_reset-credential", device.pk)))
    operator.post(at("devices_device_reset-credential", device.pk))
    assert not device.credentials.exists()


def test_several_devices_are_forgotten_after_one_question(operator: Client, world: World) -> None:
    devices = world.devices(["edge-1", "edge-2", "edge-3"])
    chosen = {"action": "forget", "_selected_action": [device.pk for device in devices[:2]]}
    asked = operator.post(at(LIST), chosen)
    assert "Forget: 2 devices?" in words(asked)
    assert Device.objects.count() == 3
    operator.post(at(LIST), chosen | {"confirmed": "yes"})
    assert [device.name for device in Device.objects.all()] == ["edge-3"]


def test_a_viewer_has_no_menu_of_actions(viewer: Client, world: World) -> None:
    device = world.device("edge-1")
    viewer.post(at(LIST), {"action": "forget", "_selected_action": [device.pk], "confirmed": "yes"})
    assert Device.objects.exists()


def test_events_of_a_device_are_on_its_page_and_in_the_list(viewer: Client, world: World) -> None:
    device = world.device("edge-1")
    Event.objects.create(
        at=world.now, object_kind="Device", object_name="edge-1", reason="WentOffline", message="no report for 5 min"
    )
    assert "WentOffline" in words(viewer.get(at("devices_device_change", device.pk)))
    listed = viewer.get(at("core_event_changelist"), {"q": "edge-1"})
    assert "no report for 5 min" in words(listed)
    assert f"{at(LIST)}?q=edge-1" in listed.content.decode()
