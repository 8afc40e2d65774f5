"""The Celery application. Each app declares the schedule of its periodic jobs beside them (``jobs.SCHEDULE``)."""

from __future__ import annotations

import logging.config
import os

from celery import Celery
from celery.signals import setup_logging
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES

from fleet.core import folder_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fleet.settings.local")

TRANSPORT_ALIASES[folder_broker.SCHEME] = folder_broker.TRANSPORT
app = Celery("fleet")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks(related_name="jobs")


@setup_logging.connect
def _log_as_everywhere(**_: object) -> None:
    """Keep Celery from setting up lines of its own form; ``--loglevel`` gives way to the settings."""
    logging.config.dictConfig(settings.LOGGING)
