"""How long work on a release may take; whoever does it asks between two pieces of it."""

from __future__ import annotations

import math

from agent.clock import Clock, SystemClock


class TooSlow(Exception):
    """It took longer than it may; the message says how long that is."""


class Patience:
    """Counts ``seconds`` from now, on a clock that nobody can set."""

    def __init__(self, seconds: float = math.inf, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._end = self._clock.monotonic() + seconds

    def check(self) -> None:
        """Raises TooSlow once the seconds are over."""
        if self._clock.monotonic() > self._end:
            raise TooSlow(f"it took more than {self._seconds:g} seconds")
