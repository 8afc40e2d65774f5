"""What ``manage.py check --deploy`` says about this app."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register


@register(Tags.security, deploy=True)
def keys_are_set(**_: Any) -> list[CheckMessage]:
    """Without a key the vault is closed: no secret can be stored, and none that is stored can be read."""
    if settings.FLEET_SECRET_KEYS:
        return []
    return [
        Warning(
            "FLEET_SECRET_KEYS is not set: secrets can neither be stored nor given to devices.",
            hint="Set it to a Fernet key: openssl rand -base64 32 | tr +/ -_",
            id="vault.W001",
        )
    ]
