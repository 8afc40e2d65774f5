"""The audit and the events: who did what, and what happened by itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.core import audit, clock
from fleet.core.models import AuditEntry, Event

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
pytestmark = [pytest.mark.django_db, pytest.mark.clause("ADM-1")]


def test_an_entry_outlives_the_user() -> None:
    ada = User.objects.create_user("ada")
    with clock.reading(lambda: NOON):
        audit.record(actor=ada, action="device.forget", kind="Device", name="edge-1", detail={"reason": "stolen"})
    ada.delete()
    entry = AuditEntry.objects.get()
    assert (entry.actor, str(entry), entry.at) == (None, "ada device.forget Device edge-1", NOON)
    assert entry.detail == {"reason": "stolen"}


def test_what_nobody_asked_for_is_the_systems() -> None:
    audit.record(actor=None, action="token.expire", kind="EnrolmentToken", name="lab")
    assert AuditEntry.objects.get().actor_name == audit.SYSTEM


def test_a_thousand_events_are_one_statement() -> None:
    happenings = [audit.Happening("Device", f"edge-{n}", "Offline", "silent") for n in range(1000)]
    with CaptureQueriesContext(connection) as queries:
        audit.events(happenings)
    assert Event.objects.count() == 1000
    assert len([query for query in queries if query["sql"].startswith("INSERT")]) == 1
