"""Environment variables as settings need them, refused by name when they can't be what they should be."""

from __future__ import annotations

import os
from collections.abc import Collection
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


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


def hosts(text: str) -> list[str]:
    """Host names, separated by commas."""
    return [host.strip() for host in text.split(",") if host.strip()]


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
