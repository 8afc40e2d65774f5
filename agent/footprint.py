"""How the process stays small on a device with little memory (AGT-14)."""

from __future__ import annotations

import ctypes

#: Of glibc's ``malloc.h``.
_TRIM_THRESHOLD, _ARENA_MAX = -1, -8
_GIVE_BACK_BYTES = 131_072


def keep_small() -> bool:
    """Let all threads share one heap, and let it give back what it does not use; whether this C library can.

    By itself glibc makes a heap for each of the many short-lived threads and keeps what they needed at their peak:
    several megabytes that nothing uses. Before the first thread is started.
    """
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    return change is not None and all(
        change(option, value) for option, value in ((_ARENA_MAX, 1), (_TRIM_THRESHOLD, _GIVE_BACK_BYTES))
    )
