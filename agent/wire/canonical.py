"""The canonical form: the same meaning gives the same bytes, on server and device, across versions."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


def encode(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys, no spaces and defaults left out (see :mod:`agent.wire.manifest`)."""
    return msgspec.json.encode(value, order="sorted")


def digest(value: Any) -> str:
    """Hexadecimal SHA-256 of the canonical form (DEP-9: equal digests mean the same spec)."""
    return hashlib.sha256(encode(value)).hexdigest()
