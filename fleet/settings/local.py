"""The embedded default: one machine, SQLite, a folder as broker, groups kept in the database. For trying it out.

The secret key is made once per data directory, so that no installation shares one.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fleet.settings.base import *
from fleet.settings.base import DATA_DIR
from fleet.settings.databases import broker, database
from fleet.settings.environment import hosts


def _own_secret_key(folder: Path) -> str:
    path = folder / "secret-key"
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(50))
    return path.read_text()


DATA_DIR.mkdir(parents=True, exist_ok=True)
DEBUG = os.environ.get("FLEET_DEBUG") == "1"
SECRET_KEY = os.environ.get("FLEET_SECRET_KEY") or _own_secret_key(DATA_DIR)
ALLOWED_HOSTS = hosts(os.environ.get("FLEET_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]"))
DATABASES = {"default": database(DATA_DIR)}
CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS = broker(DATA_DIR)
FLEET_GROUP_SOURCE = os.environ.get("FLEET_GROUP_SOURCE", "devices.group_sources.DatabaseGroupSource") or None
