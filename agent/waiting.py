"""Word from the control plane: while it says by itself when something changed, polls may be rare.

Only a short cut. Word that is lost, late or wrong costs time: the polls go on, and they alone decide (AGT-9).
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent.app import Agent
from agent.attempts import LONGEST_PAUSE_SECONDS, Attempts
from agent.control import ControlError

#: Between two polls while word comes: for the case that it didn't.
RARE_POLL_SECONDS = 300.0
#: After a wait that failed, growing as for all calls; and where nobody serves waiting.
RETRY_SECONDS = 5.0
NOT_SERVED_SECONDS = 600.0
#: From the beginning of a wait to that of the next: two machines that claim to be one device end each other's.
GAP_SECONDS = 5.0

logger = logging.getLogger("agent")


class Word:
    """Waits for word (in a thread of its own) and tells the polls what follows (in theirs).

    ``on_poll`` is called when a poll is due earlier than was said before, ``on_wait`` when a wait may be.
    """

    def __init__(
        self, agent: Agent, dice: random.Random, *, on_poll: Callable[[], None], on_wait: Callable[[], None]
    ) -> None:
        self._agent = agent
        self._clock = agent.clock
        self._dice = dice
        self._on_poll, self._on_wait = on_poll, on_wait
        self._attempts = Attempts(RETRY_SECONDS)
        self._comes = False
        #: Word came, and no poll that began after it has succeeded yet; of which state, and when to poll.
        self._is_unheeded, self._of, self._soon = False, "", math.inf

    # For the polls -------------------------------------------------------------------------------------------------

    def poll_due(self, due: float) -> float:
        """When to poll, if it was to be at ``due``."""
        return min(due, self._soon)

    def poll_pause(self, seconds: float) -> float:
        """How long until the next poll, if it were ``seconds``."""
        return max(seconds, RARE_POLL_SECONDS) if self._comes else seconds

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Around a poll. Word that comes after its beginning is heeded by the next one."""
        self._soon = math.inf
        is_heeded = self._is_unheeded  # in this order, or word that comes between the two would be lost
        yield
        if is_heeded:
            self._is_unheeded = False
        self._on_wait()

    def start_anew(self) -> None:
        """Whatever went wrong is over, as far as we know."""
        self._attempts.succeeded(due=0.0)
        self._on_wait()

    # For the thread that waits -------------------------------------------------------------------------------------

    def wait(self) -> float:
        """Wait, if that is due: up to a minute; seconds until the next time."""
        begun, etag = self._clock.monotonic(), self._agent.desired.etag
        if not etag or self._is_unheeded:
            return LONGEST_PAUSE_SECONDS  # the next poll that succeeds rings
        if begun >= self._attempts.due:
            try:
                self._take(etag, begun, is_news=self._agent.wait(etag))
            except ControlError as error:
                self._go_on_polling(error)
        return max(0.0, self._attempts.due - self._clock.monotonic())

    def _take(self, etag: str, begun: float, *, is_news: bool) -> None:
        """To be heeded at a moment of our own, because thousands are told at the same one (E6)."""
        if is_news and etag == self._of:
            raise ControlError("it says that something changed, and shows what is known already", is_temporary=False)
        now = self._clock.monotonic()
        soon = now + self._dice.uniform(0.0, self._agent.config.server.wait_spread_seconds)
        self._comes = True
        self._attempts.succeeded(due=now if is_news else max(soon, begun + GAP_SECONDS))
        if is_news:
            self._is_unheeded, self._of = True, etag
            self._poll_at(soon)

    def _go_on_polling(self, error: ControlError) -> None:
        now = self._clock.monotonic()
        if not self._attempts.failures:
            logger.info("polling as often as configured, because waiting does not work: %s", error)
        self._attempts.failed(error, now, self._dice)
        pause = error.retry_after if error.is_temporary else NOT_SERVED_SECONDS
        self._attempts.due = max(self._attempts.due, now + pause * self._dice.uniform(1.0, 1.5))
        if self._comes:
            self._comes, self._of = False, ""
            self._poll_at(now + self._dice.uniform(0.0, self._agent.config.agent.poll_seconds))

    def _poll_at(self, moment: float) -> None:
        self._soon = moment
        self._on_poll()
