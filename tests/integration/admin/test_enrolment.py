"""Letting devices in: tokens and groups."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from agent.wire.messages import EnrolRequest
from devices import services
from devices.models import Device, DeviceGroup, EnrolmentToken
from fleet.core.errors import FleetError
from fleet.core.models import AuditEntry
from tests.integration.admin.pages import at, words
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("ADM-1")
ADD = "devices_enrolmenttoken_add"


def _create(administrator: Client, **fields: object) -> str:
    """The token that the page shows."""
    page = administrator.post(at(ADD), {"name": "pilot", "days": 7, "use_limit": 1, "labels": "", **fields})
    (secret,) = re.findall(r'id="secret">([^<]+)<', page.content.decode())
    assert "no-store" in page["Cache-Control"]
    return str(secret)


@pytest.mark.case("E1")
@pytest.mark.clause("DEV-1")
def test_a_token_has_a_short_life_and_a_limit_unless_somebody_says_otherwise(
    administrator: Client, world: World
) -> None:
    form = administrator.get(at(ADD)).content.decode()
    assert re.search(r'name="days" value="7"', form)
    assert re.search(r'name="use_limit" value="1"', form)
    _create(administrator)
    token = EnrolmentToken.objects.get()
    assert (token.expires_at, token.use_limit) == (world.now + timedelta(days=7), 1)


def test_the_token_is_shown_once_with_the_command_and_works(administrator: Client, world: World) -> None:
    secret = _create(administrator, labels="site=berlin", groups=[world.group("lab").pk])
    services.device_enrol(request=EnrolRequest(device="edge-1", token=secret))
    device = Device.objects.get()
    assert device.operator_labels == {"site": "berlin"}
    assert [group.name for group in device.groups.all()] == ["lab"]
    token = EnrolmentToken.objects.get()
    for view in (at("devices_enrolmenttoken_change", token.pk), at("devices_enrolmenttoken_changelist")):
        page = administrator.get(view)
        assert secret not in page.content.decode()
        assert "1 of 1" in words(page)


def test_the_command_names_this_server(administrator: Client, world: World) -> None:
    page = administrator.post(at(ADD), {"name": "pilot", "days": 7, "use_limit": 1}, headers={"host": "fleet.example"})
    assert "fleet-agent enroll --token-file - It waits for the token" in words(page)
    assert 'url = "http://fleet.example"' in words(page)


@pytest.mark.parametrize(
    "fields", [{"days": 0}, {"use_limit": 0}, {"name": ""}, {"days": 9999}, {"labels": "canary=true"}]
)
def test_a_token_without_sense_is_not_made(administrator: Client, world: World, fields: dict[str, object]) -> None:
    administrator.post(at(ADD), {"name": "pilot", "days": 7, "use_limit": 1, "labels": "", **fields})
    assert not EnrolmentToken.objects.exists()


@pytest.mark.case("E4")
def test_a_name_that_is_taken_is_said(administrator: Client, world: World) -> None:
    _create(administrator)
    page = administrator.post(at(ADD), {"name": "pilot", "days": 7, "use_limit": 1})
    assert page.status_code == 409
    assert "pilot" in words(page)
    assert EnrolmentToken.objects.count() == 1


def test_a_revoked_token_lets_nobody_in(administrator: Client, world: World) -> None:
    secret = _create(administrator)
    token = EnrolmentToken.objects.get()
    assert "No further device can enrol" in words(administrator.get(at("devices_enrolmenttoken_revoke", token.pk)))
    administrator.post(at("devices_enrolmenttoken_revoke", token.pk))
    with pytest.raises(FleetError):
        services.device_enrol(request=EnrolRequest(device="edge-1", token=secret))
    assert "revoked" in words(administrator.get(at("devices_enrolmenttoken_changelist")))


def test_an_operator_lets_nobody_in(operator: Client) -> None:
    assert operator.post(at(ADD), {"name": "pilot", "days": 7, "use_limit": 1}).status_code == 403


def test_a_group_is_made_filled_and_given_deployers(administrator: Client, world: World) -> None:
    world.device("edge-1", groups=[])
    world.device("edge-2", groups=[])
    page = administrator.post(at("devices_devicegroup_add"), {"name": "berlin"}, follow=True)
    assert "No device is in this group" in words(page)
    group = DeviceGroup.objects.get(name="berlin")
    administrator.post(at("devices_devicegroup_devices", group.pk), {"devices": "edge-2\nedge-1\n"})
    operator = Group.objects.get(name="operator")
    administrator.post(at("devices_devicegroup_deployers", group.pk), {"deployers": [operator.pk]})
    assert {device.name for device in group.devices.all()} == {"edge-1", "edge-2"}
    assert list(group.deployers.all()) == [operator]
    assert AuditEntry.objects.filter(object_name="berlin", actor_name="administrator").count() == 3


def test_a_group_cannot_have_devices_that_are_not_enrolled(administrator: Client, world: World) -> None:
    world.device("edge-1", groups=["lab"])
    group = world.group("lab")
    page = administrator.post(at("devices_devicegroup_devices", group.pk), {"devices": "edge-1\nedge-99"})
    assert page.status_code == 404
    assert "there is no device edge-99; the group was left as it was" in words(page)
    assert group.devices.count() == 1


def test_a_group_that_goes_leaves_its_devices(administrator: Client, world: World) -> None:
    world.device("edge-1", groups=["lab"])
    group = world.group("lab")
    assert "1 device leaves it" in words(administrator.get(at("devices_devicegroup_remove", group.pk)))
    administrator.post(at("devices_devicegroup_remove", group.pk))
    assert not DeviceGroup.objects.exists()
    assert Device.objects.exists()


@pytest.mark.parametrize("name", ["Berlin", "a b", "-x", "x" * 300])
def test_a_group_that_no_manifest_could_name_is_refused(administrator: Client, name: str) -> None:
    page = administrator.post(at("devices_devicegroup_add"), {"name": name})
    assert page.status_code in (200, 422)
    assert not DeviceGroup.objects.exists()
