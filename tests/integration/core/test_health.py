"""What a load balancer and a watchdog ask."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from devices.models import Device, ReportInbox
from fleet.core import clock
from fleet.settings.databases import REDIS_PATIENCE
from tests.support.processes import enqueueing_to


def test_a_living_process_says_so_without_any_database(client: Client) -> None:
    """pytest-django refuses a database to a test that doesn't ask for one."""
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")


@pytest.mark.database
def test_all_well(client: Client) -> None:
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"ready": True, "faults": {}})


@pytest.mark.django_db
def test_a_broker_that_is_away_is_named_and_its_address_is_not(client: Client) -> None:
    with enqueueing_to("redis://:s3cr3t@127.0.0.1:1/0", REDIS_PATIENCE):
        response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["faults"] == {"broker": "does not answer (OperationalError); the log says more"}


@pytest.mark.database
def test_migrations_that_are_not_applied_are_counted(client: Client) -> None:
    last = MigrationRecorder(connection).migration_qs.filter(app="django_celery_beat").latest("id")
    last.delete()
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["faults"] == {"database": "1 migration is not applied; run manage.py migrate"}


@pytest.mark.database
def test_reports_that_nobody_reads_make_the_process_unready(client: Client) -> None:
    device = Device.objects.create(name="edge-1", enrolled_at=clock.now())
    report = ReportInbox(device=device, kind="facts", sequence=1, body=b"", received_at=clock.now())
    report.save()
    assert client.get("/readyz").status_code == 200
    report.received_at -= timedelta(minutes=2)
    report.save()
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["faults"]["inbox"].startswith("the oldest unread report waits for 12")
