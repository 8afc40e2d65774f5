"""The first page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from devices.models import Connectivity, Heartbeat, ReportInbox
from fleet.core.models import Event
from fleet.overview import Silence, dropped
from tests.integration.admin.pages import at, words
from tests.integration.rollouts.world import START, World

pytestmark = pytest.mark.clause("ADM-1")


def overview(client: Client) -> str:
    return words(client.get(at("index")))


def test_an_empty_installation_says_what_to_do_first(administrator: Client) -> None:
    text = overview(administrator)
    assert "No device has enrolled yet" in text
    assert "Nothing is deployed yet" in text


def test_devices_are_counted_by_connectivity_and_lead_to_the_list(viewer: Client, world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(5)])
    world.goes(devices[0], Connectivity.OFFLINE)
    world.goes(devices[1], Connectivity.STALE)
    Heartbeat.objects.filter(device=devices[2]).update(connectivity=Connectivity.NEVER, last_seen=None)
    page = viewer.get(at("index"))
    assert "online 2" in words(page)
    assert "stale 1" in words(page)
    assert "offline 1" in words(page)
    assert "never reported 1" in words(page)
    assert "heartbeat__connectivity__exact=offline" in page.content.decode()


@pytest.mark.clause("DEP-16")
def test_what_waits_is_told_in_its_own_sentence(viewer: Client, world: World) -> None:
    world.device("edge-1")
    waiting = world.rollout(world.manifest("waits", role="nobody"))
    page = viewer.get(at("index"))
    assert "default/waits" in words(page)
    assert "No device has the labels role=nobody" in words(page)
    assert at("rollouts_deployment_change", waiting.pk) in page.content.decode()


def test_nothing_waits_when_everything_converged(viewer: Client, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    world.drain()
    world.evaluate(deployment)
    assert "Nothing waits" in overview(viewer)


def test_events_of_today_are_drawn_and_told(viewer: Client, world: World) -> None:
    Event.objects.create(
        at=START - timedelta(hours=3),
        object_kind="Device",
        object_name="edge-1",
        reason="DeviceOffline",
        message="silent",
    )
    page = viewer.get(at("index"))
    assert "1 events in the last 24 hours, 1 of them trouble" in page.content.decode()
    assert "edge-1 silent" in words(page)


@pytest.mark.case("E5")
def test_a_drop_in_reporting_devices_is_a_red_banner(viewer: Client, world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(20)])
    assert "Fewer devices are reporting" not in overview(viewer)
    silent = [device.pk for device in devices[:6]]
    world.later(minutes=10)
    Heartbeat.objects.exclude(device__in=silent).update(last_seen=world.now)
    text = overview(viewer)
    assert "Fewer devices are reporting" in text
    assert "6 of 20 devices" in text


@pytest.mark.case("E5")
def test_a_worker_that_is_missing_is_noticed_though_nothing_marks_devices(viewer: Client, world: World) -> None:
    """Without a worker no device would ever be marked stale: all of them still say online."""
    device = world.device("edge-1")
    world.devices([f"edge-{n}" for n in range(2, 9)])
    ReportInbox.objects.create(device=device, kind="facts", sequence=2, received_at=world.now, body=b"{}")
    world.later(minutes=10)
    text = overview(viewer)
    assert "Reports arrive, but nobody takes them in" in text
    assert "Fewer devices are reporting" in text


@pytest.mark.case("E5")
@pytest.mark.parametrize(
    ("once", "newly", "expected"),
    [
        (0, 0, False),
        (1, 0, False),
        (1, 1, True),  # the only one
        (10, 1, False),  # a single device is its own matter
        (10, 2, True),
        (200, 10, False),
        (200, 20, True),
    ],
)
def test_when_silence_counts_as_a_drop(once: int, newly: int, expected: bool) -> None:
    assert dropped(Silence(once, newly, START)) is expected


@pytest.mark.case("E5")
def test_devices_that_are_away_for_long_do_not_alarm(viewer: Client, world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(6)])
    world.later(hours=5)
    Heartbeat.objects.filter(device__in=devices[3:]).update(last_seen=world.now)
    assert "Fewer devices are reporting" not in overview(viewer)


def test_staff_without_a_role_see_an_empty_frame(client: Client, world: World) -> None:
    world.device("edge-1")
    client.force_login(User.objects.create_user("guest", is_staff=True))
    page = client.get(at("index"))
    assert page.status_code == 200
    assert "online" not in words(page)
    assert "What waits" not in words(page)
