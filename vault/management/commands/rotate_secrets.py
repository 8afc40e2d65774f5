"""``manage.py rotate_secrets``: after a new key was put first in ``FLEET_SECRET_KEYS``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.core.errors import Conflict
from vault.services import secrets_rotate


class Command(BaseCommand):
    help = "Encrypt every secret with the newest key; may be interrupted and run again."

    def handle(self, *_args: Any, **_options: Any) -> None:
        try:
            rotated = secrets_rotate()
        except Conflict as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{_values(rotated.done)} encrypted with the newest key.")
        if rotated.unreadable:
            named = "\n".join(f"  {place}" for place in rotated.unreadable)
            raise CommandError(
                f"{_values(len(rotated.unreadable))} left alone: no key of FLEET_SECRET_KEYS decrypts what follows; "
                f"put back the key that does, or set it anew:\n{named}"
            )
        self.stdout.write("Keys after the first can be taken out of FLEET_SECRET_KEYS.")


def _values(number: int) -> str:
    return "1 value" if number == 1 else f"{number} values"
