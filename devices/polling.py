"""What an idle poll reads: one indexed statement, which is most of what the database does all day.

A room of its own, because it goes below the ORM: on PostgreSQL the statement is prepared once per connection, which
takes it from 0.20 to 0.08 ms. Through a pooler that hands out a connection per transaction, prepared statements need
PgBouncer 1.21 or later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper

_STATEMENT = """
SELECT head.device_id, head.epoch, head.version
FROM devices_credential AS credential
JOIN devices_desiredhead AS head ON head.device_id = credential.device_id
WHERE credential.token_hash = %s
"""


class Head(NamedTuple):
    """Who polls, and the version of what they shall have."""

    device_id: int
    epoch: int
    version: int

    @property
    def etag(self) -> str:
        return f'"{self.epoch}.{self.version}"'


def head_of(token_hash: str) -> Head | None:
    """The head that belongs to a credential; None when there is no such credential."""
    with _cursor() as cursor:
        cursor.execute(_STATEMENT, [token_hash])
        row = cursor.fetchone()
    return Head(*row) if row else None


def _cursor() -> CursorWrapper:
    """Django's own cursor, but on PostgreSQL one that prepares what it executes (``prepare_threshold`` in settings)."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    connection.ensure_connection()
    cursor: Any = psycopg.Cursor(connection.connection)
    # Django wraps its cursors with these two: so the statement is counted by tests like any other.
    return connection.make_debug_cursor(cursor) if connection.queries_logged else connection.make_cursor(cursor)
