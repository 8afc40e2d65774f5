"""``manage.py new_epoch``: after restoring a backup."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from devices.services.upkeep import epoch_begin


class Command(BaseCommand):
    help = "After a restore from a backup: tell all devices that versions of desired state count anew."

    def handle(self, *_args: Any, **_options: Any) -> None:
        epoch = epoch_begin()
        self.stdout.write(f"Epoch {epoch} begins; devices follow it at their next poll.")
