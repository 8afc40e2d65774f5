"""Where the data and the broker are: SQLite and a folder when nothing is said, PostgreSQL and Redis by URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dj_database_url

SQLITE_OPTIONS = {
    # IMMEDIATE takes the write lock when a transaction begins: a later upgrade could fail without waiting.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
}

# A bell that can't be rung at once is not worth waiting for: a request stands behind it.
REDIS_PATIENCE = {"socket_connect_timeout": 2, "socket_timeout": 5, "max_retries": 1, "interval_start": 0}


def database(data_dir: Path) -> dict[str, Any]:
    """Django's ``default`` database from ``FLEET_DATABASE_URL``, else SQLite in the data directory."""
    url = os.environ.get("FLEET_DATABASE_URL")
    if not url:
        return sqlite(data_dir / "fleet.sqlite3")
    return dict(dj_database_url.parse(url, conn_max_age=600))


def sqlite(path: Path) -> dict[str, Any]:
    """SQLite as the embedded default uses it."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": 600,
        "OPTIONS": SQLITE_OPTIONS,
    }


def broker(data_dir: Path) -> tuple[str, dict[str, Any]]:
    """Celery's broker URL and transport options: Redis from ``FLEET_REDIS_URL``, else a folder."""
    url = os.environ.get("FLEET_REDIS_URL")
    if url:
        return url, {"visibility_timeout": 600, **REDIS_PATIENCE}
    folder = data_dir / "broker"
    for part in ("queue", "processed", "control"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    return "folder://localhost/", {
        # One folder for both directions: client and worker share it.
        "data_folder_in": str(folder / "queue"),
        "data_folder_out": str(folder / "queue"),
        "processed_folder": str(folder / "processed"),
        "control_folder": str(folder / "control"),
        "polling_interval": 0.1,
    }
