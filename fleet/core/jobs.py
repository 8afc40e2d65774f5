"""How work gets to a worker: bells after commit, and periodic sweeps that find what a lost bell left.

A broker is only a bell. A message may be lost or come twice; so every job may run at any time, in any number, and looks
at the database to see what there is to do.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from celery import Task, shared_task
from django.db import close_old_connections, connection, transaction

from fleet.core.leases import lease

log = logging.getLogger(__name__)
Item = TypeVar("Item")

#: A lease outlives its period, so that a slow run is not joined by a second one.
LEASE_SECONDS = 60
#: A bell that nobody heard for so long is worth nothing: sweeps have passed meanwhile.
BELL_SECONDS = 60
#: For how long a process rings no more after the broker failed: a request shall not wait for it again and again.
PAUSE_SECONDS = 15.0
_quiet_until = 0.0


def enqueue(task: Task, *arguments: Any) -> None:
    """Ring for ``task`` once the current transaction is committed (case R13).

    A broker that is away costs time, never the caller's work: it is logged, and a sweep will find the work.
    """
    transaction.on_commit(lambda: _ring(task, arguments))


def _ring(task: Task, arguments: tuple[Any, ...]) -> None:
    global _quiet_until  # noqa: PLW0603  (a process has one broker)
    if time.monotonic() < _quiet_until:
        return
    try:
        task.apply_async(arguments, expires=BELL_SECONDS, retry=False)
    except Exception as error:  # a broker fails in as many ways as there are transports
        _quiet_until = time.monotonic() + PAUSE_SECONDS
        log.warning("could not ring for %s: %s", task.name, error, extra={"job": task.name})


def periodic(name: str, *, lease_seconds: float = LEASE_SECONDS) -> Callable[[Callable[[], Any]], Task]:
    """A Celery task without arguments that runs under a lease of its own name; a second runner returns at once.

    A killed worker keeps the lease until it runs out, so what people wait for takes a short one.
    """

    def decorate(function: Callable[[], Any]) -> Task:
        @shared_task(name=name)
        @functools.wraps(function)
        def run() -> None:
            with lease(name, seconds=lease_seconds) as ours:
                if ours:
                    function()

        return run

    return decorate


def scheduled(task: Task, seconds: float) -> dict[str, Any]:
    """An entry of an app's ``SCHEDULE``: missed ticks expire instead of piling up behind a busy worker."""
    return {"task": task.name, "schedule": seconds, "options": {"expires": max(2 * seconds, 5)}}


def each(items: Iterable[Item], function: Callable[[Item], Any]) -> int:
    """Call ``function`` with every item; an error is logged and does not keep the others waiting (case R4).

    Returns how many failed.
    """
    failures = 0
    for item in items:
        try:
            function(item)
        except Exception:
            failures += 1
            log.exception("%s failed for %r; the others go on", getattr(function, "__name__", function), item)
            if not connection.in_atomic_block:
                close_old_connections()
    return failures
