"""One kind of call to the control plane: when it is due, and how it fares."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agent.control import ControlError, Unauthorised

LONGEST_PAUSE_SECONDS = 300.0
LONGEST_UNAUTHORISED_PAUSE_SECONDS = 1800.0


@dataclass(slots=True)
class Attempts:
    """When one kind of call is due, and how it fares. Failures back off, each kind by itself (E6)."""

    base_seconds: float
    due: float = 0.0
    failures: int = 0
    error: ControlError | None = None

    def succeeded(self, due: float) -> None:
        self.failures, self.error, self.due = 0, None, due

    def failed(self, error: ControlError, now: float, dice: random.Random) -> None:
        """Later and later, each time between half of the pause and all of it."""
        longest = LONGEST_UNAUTHORISED_PAUSE_SECONDS if isinstance(error, Unauthorised) else LONGEST_PAUSE_SECONDS
        pause = min(self.base_seconds * 2.0 ** min(self.failures, 20), longest)
        self.failures += 1
        self.error = error
        self.due = now + pause * dice.uniform(0.5, 1.0)
