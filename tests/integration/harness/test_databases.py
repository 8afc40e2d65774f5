"""A test marked ``database`` runs on the database that the run says."""

from __future__ import annotations

import os

import pytest
from django.db import connection

pytestmark = pytest.mark.database


def test_the_run_uses_the_database_that_it_says() -> None:
    said = os.environ.get("FLEET_TEST_DATABASE", "postgres")
    assert connection.vendor == {"postgres": "postgresql", "sqlite": "sqlite"}[said]


def test_it_is_set_up_for_tests() -> None:
    """SQLite as the embedded default has it; PostgreSQL without what only a power loss would need."""
    question, answer = {"sqlite": ("PRAGMA journal_mode", "wal"), "postgresql": ("SHOW fsync", "off")}[
        connection.vendor
    ]
    with connection.cursor() as cursor:
        cursor.execute(question)
        assert cursor.fetchone() == (answer,)
