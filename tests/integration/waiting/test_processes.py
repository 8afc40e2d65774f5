"""Real waiting processes on the test's database, with a few hundred devices that wait."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future

import psycopg
import pytest
import requests
from django.db import connection, transaction
from django.db.models import F

from devices.models import DesiredHead, Device
from devices.services import device_forget
from devices.waiting import bell
from harness.control_plane import ControlPlane
from harness.postgres import PostgresServer
from harness.waiters import Reply, Waiters
from harness.waiting import wait_until
from tests.integration.waiting.crowd import FIRST, change, enrolled
from tests.support.databases import TestDatabase

pytestmark = pytest.mark.slow

Held = dict[str, Future[Reply]]


@pytest.fixture
def waiters() -> Iterator[Waiters]:
    with Waiters() as crowd:
        yield crowd


def hold(waiters: Waiters, devices: list[Device], *addresses: str) -> Held:
    """Let the devices wait, at each address in turn, until all are held."""
    held = {
        device.name: waiters.hold(addresses[number % len(addresses)], device.name, FIRST)
        for number, device in enumerate(devices)
    }
    wait_until(lambda: sum(map(held_at, addresses)) == len(held), seconds=20, what="all are held")
    return held


def held_at(address: str) -> int:
    return int(requests.get(f"{address}/readyz", timeout=5).json()["waiting"])


def told(held: Held) -> dict[str, int]:
    return {name: reply.result().status for name, reply in held.items() if reply.done()}


def all_told(held: Held, names: set[str]) -> bool:
    return told(held).keys() >= names


@pytest.mark.database(transaction=True)
def test_of_hundreds_who_wait_exactly_those_are_told_for_whom_something_changed(
    control_plane: ControlPlane, waiters: Waiters
) -> None:
    control_plane.env["FLEET_LOOK_SECONDS"] = "0.1"
    devices = enrolled(300)
    held = hold(waiters, devices, control_plane.waiting(), control_plane.waiting(name="second"))

    change(devices[:3])
    wait_until(lambda: all_told(held, {"edge-0", "edge-1", "edge-2"}), seconds=5, what="three are told")
    with transaction.atomic():
        change(devices[3:5])
        with pytest.raises(TimeoutError):  # looks go by, and see nothing of what is not committed
            wait_until(lambda: len(told(held)) > 3, seconds=0.5, what="told too early")
    wait_until(lambda: all_told(held, {"edge-3", "edge-4"}), seconds=5, what="a late commit is seen")
    # A message that was lost: nobody rings, and the next look finds it all the same.
    DesiredHead.objects.filter(device=devices[5]).update(version=F("version") + 1)
    wait_until(lambda: all_told(held, {"edge-5"}), seconds=5, what="it is told without a bell")
    device_forget(device=devices[6], actor=None)
    wait_until(lambda: all_told(held, {"edge-6"}), seconds=5, what="a forgotten device is sent away")
    assert told(held) == {f"edge-{n}": 204 for n in range(6)} | {"edge-6": 401}


@pytest.mark.django_db(transaction=True)
def test_with_redis_the_database_is_asked_when_something_changed_and_without_it_more_often(
    control_plane: ControlPlane,
    waiters: Waiters,
    request: pytest.FixtureRequest,
    test_database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if test_database.server is None:
        return  # the embedded default has no Redis
    monkeypatch.setattr(bell, "_quiet_until", 0.0)  # and back again: the next test's Redis is well
    control_plane.env["FLEET_LOOK_SECONDS"] = "2"  # ten times as long while Redis can be heard
    redis = request.getfixturevalue("redis_server")
    devices = enrolled(3)
    held = hold(waiters, devices, control_plane.waiting())
    change(devices[:1])
    wait_until(lambda: all_told(held, {"edge-0"}), seconds=5, what="it is told by the bell")
    change(devices[1:2])
    wait_until(lambda: all_told(held, {"edge-1"}), seconds=5, what="and again")
    redis.stop()
    try:
        change(devices[2:])
        wait_until(lambda: all_told(held, {"edge-2"}), seconds=10, what="it is told without Redis")
    finally:
        redis.start()


@pytest.mark.database(transaction=True)
def test_a_process_that_is_told_to_end_lets_everybody_go_at_once(control_plane: ControlPlane, waiters: Waiters) -> None:
    held = hold(waiters, enrolled(50), control_plane.waiting())
    assert control_plane.processes[-1].stop(seconds=5) == 0
    assert set(told(held).values()) == {304}


@pytest.mark.case("E6")
@pytest.mark.django_db(transaction=True)
def test_while_the_database_is_away_those_who_wait_are_kept_and_others_are_asked_to_poll(
    control_plane: ControlPlane, waiters: Waiters, test_database: TestDatabase
) -> None:
    if test_database.server is None:
        return  # SQLite's file does not go away
    devices = enrolled(20)
    address = control_plane.waiting()
    held = hold(waiters, devices[1:], address)
    with away(test_database.server):
        newcomer = waiters.hold(address, devices[0].name, FIRST).result(20)
        assert newcomer.status == 503
        assert newcomer.headers["retry-after"]
        assert requests.get(f"{address}/readyz", timeout=5).status_code == 503
        assert requests.get(f"{address}/healthz", timeout=5).status_code == 200
    change(devices[1:2])
    wait_until(lambda: all_told(held, {"edge-1"}), seconds=10, what="it goes on afterwards")
    assert told(held) == {"edge-1": 204}
    log = (control_plane.folder / "waiting.log").read_text()
    assert log.count("the database does not answer; those who wait are kept") == 1


@contextlib.contextmanager
def away(server: PostgresServer) -> Iterator[None]:
    """The test's database takes no connections, and has only the test's own."""
    name = connection.settings_dict["NAME"]
    connection.ensure_connection()
    ours = connection.connection.info.backend_pid
    with psycopg.connect(server.url("postgres"), autocommit=True) as other:
        other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s", [name, ours]
            )
            yield
        finally:
            other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
