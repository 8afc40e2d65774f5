"""Environment variables as settings need them, refused by name when they can't be what they should be."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Collection
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

FERNET_KEY_BYTES = 32


def required(name: str, why: str) -> str:
    """The variable's text.

    Raises:
        ImproperlyConfigured: when it is missing or empty; says what belongs there.
    """
    value = os.environ.get(name, "").strip()
    if not value:
        raise ImproperlyConfigured(f"{name} is not set; needed: {why}")
    return value


def seconds(name: str, default: float) -> float:
    """A positive number of seconds.

    Raises:
        ImproperlyConfigured: when the variable is anything else.
    """
    text = os.environ.get(name, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ImproperlyConfigured(f"{name} is {text!r}; allowed: a number of seconds above 0")
    return value


def count(name: str, default: int) -> int:
    """A whole number above 0.

    Raises:
        ImproperlyConfigured: when the variable is anything else.
    """
    text = os.environ.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ImproperlyConfigured(f"{name} is {text!r}; allowed: a whole number above 0")
    return int(text or default)


def hosts(text: str) -> list[str]:
    """Host names, separated by commas."""
    return [host.strip() for host in text.split(",") if host.strip()]


def fernet_keys(name: str) -> list[str]:
    """Fernet keys, separated by commas; none when the variable is missing or empty.

    Raises:
        ImproperlyConfigured: when one is no Fernet key; says which one and not what it is.
    """
    keys = [key.strip() for key in os.environ.get(name, "").split(",") if key.strip()]
    for number, key in enumerate(keys, start=1):
        try:
            size = len(base64.b64decode(key, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if size != FERNET_KEY_BYTES:
            raise ImproperlyConfigured(
                f"{name}: number {number} is no Fernet key; allowed: 32 random bytes in URL-safe base64, "
                "as this makes one: openssl rand -base64 32 | tr +/ -_"
            )
    return keys


def url(name: str, schemes: Collection[str], example: str) -> str:
    """An address with a host and one of these schemes.

    Raises:
        ImproperlyConfigured: when it is missing or another kind of address; its password is not repeated.
    """
    text = required(name, example)
    try:
        parts = urlsplit(text)
        whole = parts.scheme in schemes and bool(parts.netloc)
    except ValueError:
        whole = False
    if not whole:
        raise ImproperlyConfigured(f"{name} is no address of this kind; allowed: {example}")
    return text
