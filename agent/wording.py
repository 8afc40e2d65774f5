"""How the agent writes things for people. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(seconds: float) -> str:
    """Unix seconds as people read them: ``2026-12-01 14:02:03 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
