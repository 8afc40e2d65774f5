"""The beat: the apps' own schedule in memory, people's in the database, and real processes that come and go."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from devices.models import Device, ReportInbox
from fleet import beat
from fleet.beat import Scheduler, own_schedule
from fleet.celery import app
from fleet.core import clock
from fleet.settings.databases import REDIS_PATIENCE
from harness.control_plane import ControlPlane
from harness.redis import RedisServer
from harness.waiting import wait_until
from tests.support.processes import enqueueing_to


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks that the beat rings for, in the order of time."""
    names: list[str] = []
    monkeypatch.setattr(Scheduler, "apply_async", lambda self, entry, **_: names.append(entry.task))
    return names


def make_due(scheduler: Scheduler, seconds: float) -> None:
    """As if so much time had passed since every entry's last run."""
    for name, entry in (scheduler._own or {}).items():
        scheduler._own[name] = entry.__class__(
            **{**dict(entry), "name": name, "app": app, "last_run_at": entry.default_now() - timedelta(seconds=seconds)}
        )
    scheduler._heap_invalidated = True


def test_every_periodic_job_is_scheduled_and_known_to_workers() -> None:
    entries = own_schedule()
    assert entries["rollouts.drain_reports"]["schedule"] == settings.FLEET_DRAIN_SECONDS
    assert {entry["task"] for entry in entries.values()} <= app.tasks.keys()


@pytest.mark.database(transaction=True)
def test_half_seconds_are_kept_and_an_idle_beat_writes_nothing(sent: list[str]) -> None:
    scheduler = Scheduler(app=app, lazy=False)
    scheduler.tick()
    sent.clear()
    make_due(scheduler, 0.6)
    with CaptureQueriesContext(connection) as queries:
        wait = scheduler.tick()
        while scheduler.tick() == 0:
            pass
    assert sorted(sent) == ["devices.drain_facts", "rollouts.drain_reports", "tasks.drain_attempts"]
    assert wait <= settings.FLEET_DRAIN_SECONDS
    assert {query["sql"].split()[0] for query in queries} <= {"SELECT", "COMMIT"}
    assert PeriodicTask.objects.count() == 0


@pytest.mark.database(transaction=True)
def test_what_people_schedule_in_the_database_runs_beside_it(sent: list[str]) -> None:
    scheduler = Scheduler(app=app, lazy=False)
    while scheduler.tick() == 0:
        pass
    every_minute = IntervalSchedule.objects.create(every=1, period="minutes")
    PeriodicTask.objects.create(name="nightly", task="people.nightly", interval=every_minute, start_time=None)
    PeriodicTask.objects.update(last_run_at=clock.now() - timedelta(minutes=2))
    make_due(scheduler, 0.6)
    while scheduler.tick() == 0:
        pass
    assert {"people.nightly", "rollouts.drain_reports"} <= set(sent)
    scheduler.sync()
    assert PeriodicTask.objects.get().total_run_count == 1


@pytest.mark.database(transaction=True)
def test_the_beat_goes_on_while_the_database_is_away(sent: list[str]) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    scheduler = Scheduler(app=app, lazy=True)
    with connection.execute_wrapper(away):
        scheduler.setup_schedule()
        make_due(scheduler, 0.6)
        while scheduler.tick() == 0:
            pass
        make_due(scheduler, 0.6)
        scheduler._last_full_sync -= timedelta(hours=1)
        while scheduler.tick() == 0:
            pass
    assert sent.count("rollouts.drain_reports") == 2


@pytest.fixture(params=["folder", "redis"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """A broker of each kind, empty, to which nobody listens."""
    if request.param == "redis":
        redis = request.getfixturevalue("redis_server")
        redis.restart()
        address, options = redis.url, dict(REDIS_PATIENCE)
    else:
        for part in ("in", "done", "control"):
            (tmp_path / part).mkdir()
        address, options = "folder://", {name: str(tmp_path / "in") for name in ("data_folder_in", "data_folder_out")}
        options |= {"processed_folder": str(tmp_path / "done"), "control_folder": str(tmp_path / "control")}
    with enqueueing_to(address, options):
        yield


@pytest.mark.clause("OPS-2")
@pytest.mark.django_db(transaction=True)
def test_a_beat_without_workers_does_not_fill_the_broker(broker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beat, "MOST_WAITING", 10)
    scheduler = Scheduler(app=app, lazy=False)
    for _ in range(20):
        make_due(scheduler, 0.6)
        while scheduler.tick() == 0:
            pass
    assert scheduler._waiting(scheduler.producer) == 10


@pytest.fixture
def report(db: None) -> Callable[[], None]:
    """A report comes in; it is read when a beat rings and a worker listens."""

    def arrive() -> None:
        device, _ = Device.objects.get_or_create(name="edge-1", defaults={"enrolled_at": clock.now()})
        ReportInbox.objects.create(device=device, kind="deployments", sequence=1, body=b"[]", received_at=clock.now())

    return arrive


def wait_until_read(seconds: float = 20) -> None:
    wait_until(lambda: not ReportInbox.objects.exists(), seconds=seconds, what="the report is read")


@pytest.mark.slow
@pytest.mark.clause("OPS-2")
@pytest.mark.case("R10")
@pytest.mark.database(transaction=True)
def test_workers_and_beats_may_be_killed_and_doubled(control_plane: ControlPlane, report: Callable[[], None]) -> None:
    worker = control_plane.worker()
    beats = [control_plane.beat(), control_plane.beat(name="second-beat")]
    report()
    wait_until_read()
    os.killpg(worker.pid, signal.SIGKILL)
    report()
    control_plane.worker(name="next-worker")
    beats[0].kill()
    wait_until_read(seconds=60)  # at the worst, a lease of the killed worker has to run out
    report()
    wait_until_read()


@pytest.mark.slow
@pytest.mark.clause("OPS-2")
@pytest.mark.django_db(transaction=True)
def test_worker_and_beat_outlast_their_broker(
    control_plane: ControlPlane, report: Callable[[], None], redis_server: RedisServer
) -> None:
    worker, clockwork = control_plane.worker(), control_plane.beat()
    report()
    wait_until_read()
    redis_server.stop()
    wait_until(lambda: b"Connection" in clockwork.log.read_bytes(), seconds=30, what="the beat has noticed")
    report()
    redis_server.start()
    wait_until_read(seconds=60)
    assert worker.running
    assert clockwork.running
