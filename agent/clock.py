"""Time as the agent sees it; injected everywhere, so that tests move it by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """``now`` is Unix seconds for people and containers; ``monotonic`` is what intervals are counted with."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


def utc(seconds: float) -> str:
    """Unix seconds as people read them: ``2026-12-01 14:02:03 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
