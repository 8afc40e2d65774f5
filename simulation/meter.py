"""What the simulated devices' requests cost, seen from their side."""

from __future__ import annotations

import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

from agent.control import ControlError, ControlPlane, Unauthorised, Unreachable

_KINDS = {"/desired": "poll", "/report": "report", "/enroll": "enrol"}


class Meter:
    """Seconds of every request by kind, and how many did not succeed and why. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seconds: dict[str, array[float]] = {}
        self.refusals: Counter[str] = Counter()
        #: One refusal of each kind in the control plane's words.
        self.words: dict[str, str] = {}

    def note(self, path: str, seconds: float, error: ControlError | None) -> None:
        """A request that ended."""
        kind = _KINDS.get(path, "document" if path.startswith("/documents/") else path.strip("/"))
        with self._lock:
            self.seconds.setdefault(kind, array("d")).append(seconds)
            if error is not None:
                why = _why(error, kind)
                self.refusals[why] += 1
                self.words.setdefault(why, str(error))

    @property
    def requests(self) -> int:
        with self._lock:
            return sum(map(len, self.seconds.values()))

    def errors(self) -> int:
        """Requests that failed, without those that the protocol provides for."""
        with self._lock:
            return sum(number for why, number in self.refusals.items() if why not in (PUT_OFF, REPLACED))

    def quantile(self, kind: str, share: float) -> float:
        """The seconds that ``share`` of the requests of a kind took at most; 1 asks for the slowest, 0 of none."""
        with self._lock:
            taken = sorted(self.seconds.get(kind, ()))
        return taken[min(int(share * len(taken)), len(taken) - 1)] if taken else 0.0


#: The control plane asked for quiet (429, 503): the agent's own back-off repeats the request.
PUT_OFF = "put off"
#: A document was asked for that is not the newest any more: the agent polls again.
REPLACED = "too late for a document"


def _why(error: ControlError, kind: str) -> str:
    if isinstance(error, Unreachable):
        return "not reached"
    if isinstance(error, Unauthorised):
        return "not authorised"
    if error.retry_after:
        return PUT_OFF
    return REPLACED if kind == "document" else "refused"


class Metered(ControlPlane):
    """A control plane whose requests are measured."""

    def __init__(
        self, url: str, meter: Meter, *, timer: Callable[[], float] = time.perf_counter, **options: Any
    ) -> None:
        super().__init__(url, **options)
        self._meter = meter
        self._timer = timer

    def _call(self, method: str, path: str, **options: Any) -> Any:
        begin = self._timer()
        error: ControlError | None = None
        try:
            return super()._call(method, path, **options)
        except ControlError as caught:
            error = caught
            raise
        finally:
            self._meter.note(path, self._timer() - begin, error)
