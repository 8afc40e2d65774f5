"""The one place where the control plane reads a clock, so that tests can say what time it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils import timezone

_source: Callable[[], datetime] = timezone.now


def now() -> datetime:
    """The current time in UTC, aware."""
    return _source()


@contextmanager
def reading(source: Callable[[], datetime]) -> Iterator[None]:
    """Within the block, :func:`now` answers what ``source`` says (for tests and simulations)."""
    global _source  # noqa: PLW0603  (a process has one clock)
    before = _source
    _source = source
    try:
        yield
    finally:
        _source = before
