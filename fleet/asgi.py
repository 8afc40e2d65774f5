"""The ASGI entrance: serves waiting, and nothing else."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fleet.settings.local")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

from devices.waiting.entrance import WaitingEntrance  # noqa: E402  (Django is set up now)

application = WaitingEntrance(limit=settings.FLEET_WAIT_LIMIT, look_seconds=settings.FLEET_LOOK_SECONDS)
