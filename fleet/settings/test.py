"""For pytest: quick passwords, no schedule, the database that the test set-up names."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fleet.settings.base import *
from fleet.settings.databases import broker, database

DATA_DIR = Path(tempfile.mkdtemp(prefix="fleet-test-"))
SECRET_KEY = "only-for-tests-" + "x" * 50
ALLOWED_HOSTS = ["*"]
DATABASES = {"default": database(DATA_DIR)}
CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS = broker(DATA_DIR)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
FLEET_GROUP_SOURCE = "devices.group_sources.DatabaseGroupSource"
