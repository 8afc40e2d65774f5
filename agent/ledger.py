"""What the agent would report right now: the state of each deployment and the problems of the device. Thread-safe."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from agent.clock import Clock
from agent.wire.messages import MAX_MESSAGE_CHARS, DeploymentReport, DeploymentState, Problem
from agent.wording import printable

MAX_IMAGES = 128
MAX_DEPLOYMENTS = 512
MAX_PROBLEMS = 64
_REASON_CHARS = 512

logger = logging.getLogger("agent")


class Ledger:
    """``on_change`` is called after every change, outside of the lock."""

    def __init__(self, clock: Clock, kept: Iterable[DeploymentReport] = ()) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries = {entry.uid: entry for entry in kept}
        self._problems: dict[str, Problem] = {}
        self.on_change: Callable[[], None] = lambda: None

    def record(
        self, uid: str, revision: int, state: DeploymentState, message: str, images: Mapping[str, str] | None = None
    ) -> None:
        """The state of a deployment as it was just observed; ``since`` stays while state and revision do."""
        with self._lock:
            old = self._entries.get(uid)
            same = old is not None and (old.state, old.revision) == (state, revision)
            entry = DeploymentReport(
                uid=uid,
                revision=revision,
                state=state,
                message=_clipped(message, MAX_MESSAGE_CHARS),
                since=old.since if old is not None and same else self._clock.now(),
                images=dict(list((images or {}).items())[:MAX_IMAGES]),
            )
            changed = entry != old
            self._entries[uid] = entry
        if changed:
            logger.info("deployment %s revision %d: %s %s", uid, revision, state, entry.message)
            self.on_change()

    def announce(self, uid: str, revision: int, message: str) -> None:
        """What is being done at this moment. A failure stays said until it is known to be over."""
        with self._lock:
            old = self._entries.get(uid)
            if old is not None and old.state is DeploymentState.FAILED and old.revision == revision:
                return
        self.record(uid, revision, DeploymentState.PROGRESSING, message, old.images if old else None)

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget deployments that are no longer desired (a removed one was reported until then)."""
        with self._lock:
            gone = [uid for uid in self._entries if uid not in uids]
            for uid in gone:
                del self._entries[uid]
        if gone:
            self.on_change()

    def entry(self, uid: str) -> DeploymentReport | None:
        with self._lock:
            return self._entries.get(uid)

    def deployments(self) -> list[DeploymentReport]:
        with self._lock:
            return sorted(self._entries.values(), key=lambda entry: entry.uid)[:MAX_DEPLOYMENTS]

    def complain(self, problem: Problem, key: str = "") -> None:
        """Something that is not about one deployment; the newest of each ``key`` (the reason) is kept."""
        key = key or problem.reason
        clipped = Problem(
            reason=_clipped(problem.reason, _REASON_CHARS), message=_clipped(problem.message, MAX_MESSAGE_CHARS)
        )
        with self._lock:
            changed = self._problems.get(key) != clipped
            self._problems[key] = clipped
        if changed:
            logger.warning("%s: %s", clipped.reason, clipped.message)
            self.on_change()

    def solved(self, key: str) -> None:
        with self._lock:
            changed = self._problems.pop(key, None) is not None
        if changed:
            self.on_change()

    def problems(self) -> list[Problem]:
        with self._lock:
            return list(self._problems.values())[:MAX_PROBLEMS]


def _clipped(text: str, limit: int) -> str:
    """Printable, and within what the contract allows."""
    shown = printable(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
