"""An installation to be measured: durable PostgreSQL, Redis, web, worker and beat, as in production but for TLS.

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


@contextlib.contextmanager
def installed() -> Iterator[Installation]:
    """An empty installation, gone afterwards."""
    with contextlib.ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="fleet-bench-")))
        postgres = exits.enter_context(PostgresServer(durable=True))
        redis = exits.enter_context(RedisServer())
        env = {
            "FLEET_DATABASE_URL": postgres.url(),
            "FLEET_REDIS_URL": redis.url,
            "FLEET_DATA_DIR": str(folder / "data"),
        }
        os.environ.update(env, DJANGO_SETTINGS_MODULE=SETTINGS)
        control_plane = exits.enter_context(ControlPlane(folder / "logs", env=env))
        control_plane.manage("migrate", "--verbosity", "0")
        django.setup()
        exits.callback(connections.close_all)
        yield Installation(folder, control_plane)
