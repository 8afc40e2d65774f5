"""The Celery application. Each app declares the schedule of its periodic jobs beside them (``jobs.SCHEDULE``)."""

from __future__ import annotations

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

from fleet.core import folder_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fleet.settings.local")

TRANSPORT_ALIASES[folder_broker.SCHEME] = folder_broker.TRANSPORT
app = Celery("fleet")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks(related_name="jobs")
