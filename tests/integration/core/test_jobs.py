"""Bells ring after commit and never hold anybody up; passes go on."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from celery import shared_task
from django.db import transaction

from fleet.core import clock, jobs
from fleet.core.models import Lease
from fleet.settings.databases import REDIS_PATIENCE
from tests.support.processes import enqueueing_to

rung: list[int] = []
passes: list[str] = []


@shared_task(name="tests.note_number")
def note_number(number: int) -> None:
    rung.append(number)


@jobs.periodic("tests.pass_once")
def pass_once() -> None:
    passes.append("pass")
    pass_once()  # a second runner, while the first one is at work


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int]]:
    """Takes what is rung instead of a worker."""
    sent: list[tuple[int]] = []
    monkeypatch.setattr(note_number, "apply_async", lambda arguments, **_: sent.append(arguments))
    return sent


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_quiet_until", 0.0)


@pytest.mark.case("R13")
@pytest.mark.database(transaction=True)
def test_a_bell_rings_after_the_commit_and_not_at_all_after_a_rollback(broker: list[tuple[int]]) -> None:
    with transaction.atomic():
        jobs.enqueue(note_number, 1)
        assert broker == []
    assert broker == [(1,)]
    with transaction.atomic():
        jobs.enqueue(note_number, 2)
        transaction.set_rollback(True)
    assert broker == [(1,)]


@pytest.fixture(params=["refuses", "is silent"])
def absent_broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a Redis that isn't there, or takes connections and says nothing."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        if request.param == "is silent":
            door.listen()
        yield f"redis://127.0.0.1:{door.getsockname()[1]}/0"


@pytest.mark.clause("OPS-2")
@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_is_logged_and_holds_up_one_request_only(
    absent_broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    start = time.monotonic()
    with enqueueing_to(absent_broker, REDIS_PATIENCE), caplog.at_level(logging.WARNING):
        for number in range(20):
            jobs.enqueue(note_number, number)
    assert time.monotonic() - start < 20
    assert [record.getMessage()[:38] for record in caplog.records if record.name == jobs.__name__] == [
        "could not ring for tests.note_number: "
    ]


@pytest.mark.database
def test_a_second_runner_of_a_periodic_job_returns_at_once() -> None:
    passes.clear()
    pass_once()
    assert passes == ["pass"]
    assert Lease.objects.get(name="tests.pass_once").expires_at <= clock.now() + timedelta(seconds=1)


@pytest.mark.case("R4")
@pytest.mark.django_db
def test_an_error_of_one_stops_none_of_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done: list[float] = []
    failed = jobs.each([1, 0, 2], lambda number: done.append(1 / number))
    assert (failed, done) == (1, [1.0, 0.5])
    (record,) = caplog.records
    assert "failed for 0; the others go on" in record.getMessage()
    assert record.exc_info
