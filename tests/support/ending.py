"""A run that is told to end (SIGTERM, from ``timeout`` or CI) puts away what it started, as an interrupted one does."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any, NoReturn

import pytest

#: How long workers may take for it, before they are killed. xdist's own 10 s are short for a Podman on a busy machine.
WORKERS_SECONDS = 30

_workers: set[int] = set()


class _Told(KeyboardInterrupt):
    """An interruption, which no ``except Exception`` of what is tested takes for an error of its own."""


def heed() -> None:
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: object) -> NoReturn:
    # Being told again (by our controller, by its closed channel as SIGINT) must not interrupt the putting away.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for worker in _workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGTERM)
    raise _Told(f"ended by signal {number}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The code that a shell gives to what a signal ended."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        session.exitstatus = 128 + signal.SIGTERM


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by the controller of a run for each worker (pytest-xdist) that it has started."""
    _workers.add(node.gateway._rinfo().pid)
    node.nodemanager.EXIT_TIMEOUT = WORKERS_SECONDS


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Everything is put away; a worker without work only waits to be closed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
