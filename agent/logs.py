"""Answers to those who want to read the end of a container's log (AGT-16).

Logs are read by a worker, one after the other, so that a log driver that hangs holds up neither passes nor reports.
An answer is repeated until it is acknowledged; after a restart of the agent it is read and sent once more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection

from agent.control import ControlError, ControlPlane, Unauthorised
from agent.reconcile import labels
from agent.reconcile.labels import Owner
from agent.reconcile.reconciler import Workers
from agent.runtime.base import Runtime, RuntimeFailure
from agent.wire.messages import MAX_LOG_CHARS, MAX_MESSAGE_CHARS, LogReply, LogRequestDocument
from agent.wording import printable, without_colours

#: More is read than is sent, so that a secret value at the edge is whole when it is looked for.
READ_BYTES = 2 * MAX_LOG_CHARS
#: In UTF-8; with what JSON adds, a message stays below the control plane's limit of 1 MiB.
MAX_LOG_BYTES = 900_000
_WORK = "logs"

logger = logging.getLogger("agent.logs")


class LogReader:
    """Reads a log as it may leave the device. ``hide(uid, text)`` takes a deployment's secret values out of it."""

    def __init__(self, runtime: Runtime, owner: Owner, hide: Callable[[str, str], str]) -> None:
        self._runtime = runtime
        self._owner = owner
        self._hide = hide

    def read(self, request: LogRequestDocument) -> LogReply:
        """The answer, in which what did not work is a sentence. Only containers of that very deployment are read."""
        try:
            container_id = self._find(request)
            found = self._runtime.logs(container_id, request.lines, READ_BYTES)
        except (RuntimeFailure, LookupError) as error:
            return _refusal(request, f"container {request.container}: {error.args[0]}")
        except Exception as error:  # a fault here must end neither the agent nor the wait of the one who asked
            logger.exception("reading the log of %s failed", request.container)
            return _refusal(request, f"unexpected error in the agent: {type(error).__name__}")
        # As it was written, and as it reads once the colours in the middle of it are gone.
        readable = without_colours(self._hide(request.deployment, found.text))
        text = printable(self._hide(request.deployment, readable), keep="\n\t")
        fitting = _end_of(text)
        return LogReply(request=request.request, text=fitting, is_cut=found.is_cut or len(fitting) < len(text))

    def _find(self, request: LogRequestDocument) -> str:
        own = {
            container.name: container.id
            for container in self._runtime.containers()
            if self._owner.owns(container.labels) and container.labels.get(labels.UID) == request.deployment
        }
        if request.container not in own:
            there = ", ".join(sorted(own)) or "none"
            raise LookupError(f"this device has none of that name for the deployment; it has: {there}")
        return own[request.container]


class LogDesk:
    """Requests that wait, and answers that were not acknowledged. ``on_reply`` is called when there is one to send."""

    def __init__(self, reader: LogReader, workers: Workers) -> None:
        self._reader = reader
        self._workers = workers
        self._lock = threading.Lock()
        self._waiting: dict[str, LogRequestDocument] = {}
        self._replies: dict[str, LogReply] = {}
        self._seen: set[str] = set()
        self.on_reply: Callable[[], None] = lambda: None

    def take(self, requests: Collection[LogRequestDocument]) -> None:
        """All requests as of now: new ones are read, those that nobody waits for any more are forgotten."""
        with self._lock:
            asked = {request.request: request for request in requests}
            new = {key: request for key, request in asked.items() if key not in self._seen}
            self._seen = set(asked)
            self._waiting = {key: it for key, it in self._waiting.items() if key in asked} | new
            self._replies = {key: reply for key, reply in self._replies.items() if key in asked}
        self._read_on()

    def has_replies(self) -> bool:
        with self._lock:
            return bool(self._replies)

    def send(self, control: ControlPlane) -> None:
        """Send one answer; the others have their turn after the next report.

        Raises:
            ControlError: then it is sent again, unless it was refused for good: nobody waits for it any more.
        """
        with self._lock:
            reply = next(iter(self._replies.values()), None)
        if reply is None:
            return
        try:
            control.answer_logs(reply)
        except ControlError as error:
            if error.is_temporary or isinstance(error, Unauthorised):
                raise
            logger.info("log request %s: %s", reply.request, error)
        with self._lock:
            self._replies.pop(reply.request, None)

    def _read_on(self) -> None:
        with self._lock:
            if not self._waiting:
                return
        self._workers.submit(_WORK, self._read_all, self._read_on)

    def _read_all(self) -> None:
        while True:
            with self._lock:
                request = next(iter(self._waiting.values()), None)
            if request is None:
                return
            reply = self._reader.read(request)
            with self._lock:
                if self._waiting.pop(request.request, None) is not None:
                    self._replies[request.request] = reply
            self.on_reply()


def _refusal(request: LogRequestDocument, problem: str) -> LogReply:
    return LogReply(request=request.request, problem=printable(problem)[:MAX_MESSAGE_CHARS])


def _end_of(text: str) -> str:
    text = text[-MAX_LOG_CHARS:]
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= MAX_LOG_BYTES else encoded[-MAX_LOG_BYTES:].decode("utf-8", "ignore")
