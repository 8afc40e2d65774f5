"""What a poll reads: one indexed statement while it is idle, which is most of what the database does all day, and a
second one with news, which thousands ask for at once after a release.

A room of its own, because both go below the ORM: building their SQL would take longer than running it. On PostgreSQL
the idle one goes below Django's and psycopg's cursors too: the statement is prepared once per connection and executed
by libpq itself, which takes the read from 0.13 to 0.05 ms. Through a pooler that hands out a connection per
transaction, prepared statements need PgBouncer 1.21 or later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID
from weakref import WeakSet

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import pq

from agent.wire.messages import DesiredItem

_STATEMENT = """
SELECT head.device_id, head.epoch, head.version
FROM devices_credential AS credential
JOIN devices_desiredhead AS head ON head.device_id = credential.device_id
WHERE credential.token_hash = %s
"""
_LIST = """
SELECT device.name, device.uid, item.kind, item.key, item.version, item.document_id, item.remove
FROM devices_device AS device
LEFT JOIN devices_desireditem AS item ON item.device_id = device.id
WHERE device.id = %s
ORDER BY item.kind, item.key
"""
_NAME = b"fleet_head_of"
_FORGOTTEN = b"26000"  # invalid_sql_statement_name
#: Connections on which the statement is prepared.
_prepared: WeakSet[psycopg.Connection[Any]] = WeakSet()


class Head(NamedTuple):
    """Who polls, and the version of what they shall have."""

    device_id: int
    epoch: int
    version: int

    @property
    def etag(self) -> str:
        return f'"{self.epoch}.{self.version}"'


class Listed(NamedTuple):
    """A device, and everything that it shall have."""

    name: str
    uid: str
    items: list[DesiredItem]


def head_of(token_hash: str) -> Head | None:
    """The head that belongs to a credential; None when there is no such credential.

    Raises:
        django.db.OperationalError: when the database is away.
    """
    # Not by Django's ``connection``, which looks the real one up again at each attribute.
    database = connections[DEFAULT_DB_ALIAS]
    read = _by_libpq if database.vendor == "postgresql" else _by_cursor
    row = read(database, token_hash)
    return Head(*row) if row else None


def listed_for(device_id: int) -> Listed | None:
    """The whole list of a device; None when there is no such device.

    Raises:
        django.db.OperationalError: when the database is away.
    """
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_LIST, [device_id])
        rows = cursor.fetchall()
    if not rows:
        return None
    name, uid, *_ = rows[0]
    items = [
        DesiredItem(kind=kind, key=key, version=version, hash=hash or "", remove=bool(remove))
        for _name, _uid, kind, key, version, hash, remove in rows
        if kind is not None  # a device without items is a row all the same
    ]
    return Listed(name, str(UUID(str(uid))), items)  # SQLite has no type for it


def _by_cursor(database: BaseDatabaseWrapper, token_hash: str) -> Sequence[int] | None:
    with database.cursor() as cursor:
        cursor.execute(_STATEMENT, [token_hash])
        row: Sequence[int] | None = cursor.fetchone()
    return row


def _by_libpq(database: BaseDatabaseWrapper, token_hash: str) -> Sequence[int] | None:
    if database.connection is None:
        database.ensure_connection()
    if database.queries_logged:  # as Django's own cursors do, for those who count
        database.queries_log.append({"sql": _STATEMENT, "time": "0"})
    with database.wrap_database_errors:
        result = _execute(database.connection, token_hash.encode())
    if result.ntuples == 0:
        return None
    return [int(result.get_value(0, column) or 0) for column in range(result.nfields)]


def _execute(connection: psycopg.Connection[Any], token_hash: bytes) -> pq.abc.PGresult:
    if connection not in _prepared:
        _prepare(connection)
    result = connection.pgconn.exec_prepared(_NAME, [token_hash])
    if result.error_field(pq.DiagnosticField.SQLSTATE) == _FORGOTTEN:
        _prepare(connection)
        result = connection.pgconn.exec_prepared(_NAME, [token_hash])
    return _sound(result)


def _prepare(connection: psycopg.Connection[Any]) -> None:
    _sound(connection.pgconn.prepare(_NAME, _STATEMENT.replace("%s", "$1").encode()))
    _prepared.add(connection)


def _sound(result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
        raise psycopg.OperationalError(result.get_error_message())
    return result
