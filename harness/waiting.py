"""Waiting for something that another process does: ask again until it is so, and say what was missing when it isn't."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def wait_until(condition: Callable[[], Answer], *, seconds: float, what: str, every: float = 0.05) -> Answer:
    """The first truthy answer of ``condition``, asked every ``every`` seconds.

    Raises:
        TimeoutError: when it stays falsy for ``seconds``; the message has ``what`` and the last answer.
    """
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not so within {seconds:g} s; the last answer was {answer!r}")
        time.sleep(every)
    return answer
