"""Many steps on one heap, each called when it is due by one of a few threads."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable

from agent.clock import Clock

#: Does what is due, and returns the seconds until something is.
Step = Callable[[], float]

RECOVERY_SECONDS = 5.0
#: At least so often a thread without work looks whether it shall end.
LOOK_SECONDS = 0.1
#: A step that says "at once" again and again must not keep the others waiting.
SHORTEST_PAUSE_SECONDS = 0.01

log = logging.getLogger(__name__)


class Agenda:
    """A step is never called by two threads at once. One that raises is logged, counted and called again later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._order = itertools.count()
        self._heap: list[tuple[float, int, Step]] = []
        self.failures = 0

    def add(self, step: Step, due: float) -> None:
        """Call ``step`` at ``due``, on the monotonic clock, and from then on after each pause that it returns."""
        with self._lock:
            heapq.heappush(self._heap, (due, next(self._order), step))

    def do_next(self) -> float:
        """Call the step that is most overdue; 0. Without one: the seconds until one is due."""
        now = self._clock.monotonic()
        with self._lock:
            if not self._heap:
                return LOOK_SECONDS
            if self._heap[0][0] > now:
                return self._heap[0][0] - now
            _due, _order, step = heapq.heappop(self._heap)
        self.add(step, self._clock.monotonic() + max(self._pause_after(step), SHORTEST_PAUSE_SECONDS))
        return 0.0

    def do_due(self) -> None:
        """Call every step that is due, in this thread: for simulations whose clock is moved by hand."""
        while not self.do_next():
            pass

    def start(self, threads: int, stop: threading.Event) -> list[threading.Thread]:
        """Work in ``threads`` threads until ``stop`` is set."""
        started = [threading.Thread(target=self._work, args=(stop,), daemon=True) for _ in range(threads)]
        for thread in started:
            thread.start()
        return started

    def _work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            pause = self.do_next()
            if pause:
                stop.wait(min(pause, LOOK_SECONDS))

    def _pause_after(self, step: Step) -> float:
        try:
            return step()
        except Exception:
            self.failures += 1
            log.exception("a simulated device failed; it goes on in %g s", RECOVERY_SECONDS)
            return RECOVERY_SECONDS
