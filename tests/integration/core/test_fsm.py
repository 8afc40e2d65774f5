"""Changing a row under its lock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.core import fsm
from fleet.core.models import AuditEntry
from tests.integration.rollouts.together import together

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def entry(db: None) -> AuditEntry:
    return AuditEntry.objects.create(at=NOON, actor_name="ada", action="x", detail={"count": [0]})


@pytest.mark.clause("OPS-2")
@pytest.mark.database(transaction=True)
def test_no_change_is_lost_when_many_change_one_row(entry: AuditEntry) -> None:
    def add() -> None:
        for _ in range(5):
            with fsm.locked(AuditEntry, entry.pk) as fresh:
                fresh.detail["count"][0] += 1

    assert together(*[add] * 4) == []
    entry.refresh_from_db()
    assert entry.detail == {"count": [20]}


@pytest.mark.database
def test_what_did_not_change_is_not_written(entry: AuditEntry) -> None:
    with (
        CaptureQueriesContext(
            connection,
        ) as queries,
        fsm.locked(AuditEntry, entry.pk) as fresh,
    ):
        assert fresh.detail == {"count": [0]}
    assert not [query for query in queries if query["sql"].startswith("UPDATE")]


@pytest.mark.database
def test_an_error_in_the_block_leaves_the_row_as_it_was(entry: AuditEntry) -> None:
    def fail() -> None:
        with fsm.locked(AuditEntry, entry.pk) as fresh:
            fresh.action = "y"
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    entry.refresh_from_db()
    assert entry.action == "x"


@pytest.mark.django_db
def test_a_row_that_is_gone_says_so() -> None:
    with pytest.raises(AuditEntry.DoesNotExist), fsm.locked(AuditEntry, 0):
        pass
