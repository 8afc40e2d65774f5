"""Time as the agent sees it; injected everywhere, so that tests move it by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """``now`` is Unix seconds for people and containers; ``monotonic`` is what intervals are counted with.

    ``boottime`` counts the time in which the machine sleeps too, as a deadline does.
    """

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    def boottime(self) -> float: ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
