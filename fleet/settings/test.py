"""For pytest: quick passwords, the database that the test set-up names by the same variables as an installation."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fleet.settings.base import *
from fleet.settings.base import INSTALLED_APPS
from fleet.settings.databases import broker, database

INSTALLED_APPS += ["simulation"]
_own_folder = None if os.environ.get("FLEET_DATA_DIR") else tempfile.TemporaryDirectory(prefix="fleet-test-")
DATA_DIR = Path(_own_folder.name if _own_folder else os.environ["FLEET_DATA_DIR"])
SECRET_KEY = "only-for-tests-" + "x" * 50
FLEET_SECRET_KEYS = ["only-for-tests-only-for-tests-only-for-test="]
ALLOWED_HOSTS = ["*"]
DATABASES = {"default": database(DATA_DIR)}
if "sqlite3" in DATABASES["default"]["ENGINE"]:
    # A file, because other processes use it too; of the same name, so that they find it by FLEET_DATA_DIR.
    DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
STATIC_ROOT = DATA_DIR / "static"
MEDIA_ROOT = DATA_DIR / "files"
STATIC_ROOT.mkdir(exist_ok=True)
CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS = broker(DATA_DIR)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
FLEET_GROUP_SOURCE = "devices.group_sources.DatabaseGroupSource"
