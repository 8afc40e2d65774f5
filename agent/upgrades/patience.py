"""Asking the control plane for seconds, no more often than it can bear (E6)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec

from agent.attempts import Attempts
from agent.clock import Clock
from agent.control import ControlError, Unauthorised
from agent.wire.messages import AttemptOffer

#: The first pause; each further one is longer.
BASE_SECONDS = 2.0


class PatientOffers:
    """Asks as long as it is answered. After a failure nobody is asked before the pause is over, or the one that the
    control plane wished: the same error is raised again meanwhile. What the question took is no second in which the
    attempt may begin, also where the machine slept over it (TSK-4).

    Belongs to one thread.
    """

    def __init__(self, ask: Callable[[str], AttemptOffer], clock: Clock, dice: random.Random) -> None:
        self._ask = ask
        self._clock = clock
        self._dice = dice
        self._calls = Attempts(BASE_SECONDS)

    def __call__(self, attempt: str) -> AttemptOffer:
        """Raises ControlError."""
        if self._calls.error and self._clock.monotonic() < self._calls.due:
            raise self._calls.error.with_traceback(None)  # else it would grow with each time
        asked_at = self._clock.boottime()
        try:
            answer = self._ask(attempt)
        except ControlError as error:
            if error.is_temporary or isinstance(error, Unauthorised):
                now = self._clock.monotonic()
                self._calls.failed(error, now, self._dice)
                self._calls.due = max(self._calls.due, now + error.retry_after)
            raise
        self._calls.succeeded(due=0.0)
        left = answer.remaining_seconds - math.ceil(self._clock.boottime() - asked_at)
        return msgspec.structs.replace(answer, remaining_seconds=max(0, left))
