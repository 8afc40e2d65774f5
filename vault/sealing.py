"""Encryption of values (ADR 7): Fernet, with the newest of ``FLEET_SECRET_KEYS``; every one of them opens.

A value is sealed together with its place, so that a row that was copied elsewhere in the database opens nowhere.
"""

from __future__ import annotations

import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from fleet.core.errors import Conflict

_END_OF_PLACE = "\x00"  # in no name and in no value
NO_KEYS = (
    "this control plane has no key to encrypt secrets with; an administrator sets FLEET_SECRET_KEYS and restarts it "
    "(docs/reference/configuration.md); nothing was changed"
)


class Unreadable(Exception):
    """No key opens this value, or it was sealed for another place. Says nothing more, so that nothing leaks."""


class Sealer:
    """The keys of this process. Cheap: make one for each use, so that settings are what they are."""

    def __init__(self) -> None:
        keys: list[str] = settings.FLEET_SECRET_KEYS
        self._fernet = MultiFernet([Fernet(key) for key in keys]) if keys else None
        self.newest = _fingerprint(keys[0]) if keys else ""

    def seal(self, place: str, value: str) -> str:
        """The value encrypted with the newest key, for this place alone.

        Raises:
            Conflict: there is no key.
        """
        if self._fernet is None:
            raise Conflict(NO_KEYS)
        return self._fernet.encrypt(f"{place}{_END_OF_PLACE}{value}".encode()).decode()

    @sensitive_variables()
    def open(self, place: str, sealed: str) -> str:
        """The value.

        Raises:
            Unreadable: see there.
        """
        if self._fernet is None:
            raise Unreadable
        try:
            found, _, value = self._fernet.decrypt(sealed).decode().partition(_END_OF_PLACE)
        except (InvalidToken, ValueError):
            raise Unreadable from None
        if found != place:
            raise Unreadable
        return value


def place_of(namespace: str, name: str, key: str) -> str:
    """How a value is called: ``namespace/name/key``."""
    return f"{namespace}/{name}/{key}"


def _fingerprint(key: str) -> str:
    """Tells keys apart and nothing else: a key is 256 random bits."""
    return hashlib.sha256(b"fleet secret key " + key.encode()).hexdigest()[:16]
