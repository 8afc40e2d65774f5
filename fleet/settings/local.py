"""The embedded default: one machine, SQLite, a folder as broker, groups kept in the database. For trying it out.

Its two keys are made once per data directory, so that no installation shares one.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from fleet.settings.base import *
from fleet.settings.base import DATA_DIR, FLEET_SECRET_KEYS, INSTALLED_APPS
from fleet.settings.databases import broker, database
from fleet.settings.environment import FERNET_KEY_BYTES, hosts


def _made_once(path: Path, make: Callable[[], str]) -> str:
    """The text of a file that only its owner reads. Of processes that start at once, one makes it, whole."""
    if not path.exists():
        descriptor, own = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mode 0600
        with os.fdopen(descriptor, "w") as file:
            file.write(make())
        with contextlib.suppress(FileExistsError):
            os.link(own, path)
        os.unlink(own)
    return path.read_text()


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(FERNET_KEY_BYTES)).decode()


DATA_DIR.mkdir(parents=True, exist_ok=True)
INSTALLED_APPS += ["simulation"]  # a tool, not for production
DEBUG = os.environ.get("FLEET_DEBUG") == "1"
SECRET_KEY = os.environ.get("FLEET_SECRET_KEY") or _made_once(
    DATA_DIR / "secret-key", lambda: secrets.token_urlsafe(50)
)
FLEET_SECRET_KEYS = FLEET_SECRET_KEYS or [_made_once(DATA_DIR / "vault-key", _fernet_key)]
ALLOWED_HOSTS = hosts(os.environ.get("FLEET_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]"))
DATABASES = {"default": database(DATA_DIR)}
CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS = broker(DATA_DIR)
FLEET_GROUP_SOURCE = os.environ.get("FLEET_GROUP_SOURCE", "devices.group_sources.DatabaseGroupSource") or None
