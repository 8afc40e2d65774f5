"""An installation to be measured: web, worker and beat on durable PostgreSQL and Redis, as in production but for TLS.

Or on SQLite and a folder, as the embedded default.

This process has Django set up on the same database, to fill it and to look at it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import django
from django.db import connections

from harness.control_plane import ControlPlane
from harness.postgres import PostgresServer
from harness.redis import RedisServer

SETTINGS = "fleet.settings.local"


@dataclass(frozen=True, slots=True)
class Installation:
    """Its processes are started by whoever needs them."""

    folder: Path
    control_plane: ControlPlane
    database_log: Path | None = None

    def logged(self, *words: str) -> list[str]:
        """The lines of all logs that have one of these words."""
        logs = [*self.control_plane.folder.glob("*.log"), *([self.database_log] if self.database_log else [])]
        lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
        return [line for line in lines if any(word in line for word in words)]


@contextlib.contextmanager
def installed(*, embedded: bool = False) -> Iterator[Installation]:
    """An empty installation, gone afterwards; ``embedded``: on SQLite and a folder."""
    with contextlib.ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="fleet-bench-")))
        env = {"FLEET_DATA_DIR": str(folder / "data")}
        database_log = None
        if not embedded:
            postgres = exits.enter_context(PostgresServer(durable=True))
            redis = exits.enter_context(RedisServer())
            env |= {"FLEET_DATABASE_URL": postgres.url(), "FLEET_REDIS_URL": redis.url}
            database_log = postgres.folder / "server.log"
        os.environ.update(env, DJANGO_SETTINGS_MODULE=SETTINGS)
        control_plane = exits.enter_context(ControlPlane(folder / "logs", env=env))
        control_plane.manage("migrate", "--verbosity", "0")
        django.setup()
        exits.callback(connections.close_all)
        yield Installation(folder, control_plane, database_log)
