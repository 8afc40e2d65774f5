"""Which word of a device about an attempt counts, whatever order they come in. Pure."""

from __future__ import annotations

#: An attempt only goes up in rank. Of the same rank the first word stays, so an end is never taken back; only
#: ``repair-required`` has something above it: what root's repair came to (SYS-6).
RANKS = {
    "offered": 0,
    "withdrawn": 0,
    "accepted": 1,
    "running": 2,
    "repair-required": 3,
    "completed": 4,
    "failed": 4,
    "refused": 4,
}
ENDED = 4


def state_after(known: str, said: str) -> str:
    """The state of an attempt in state ``known`` of which a device says ``said``: order-free."""
    return said if RANKS[said] > RANKS[known] else known


def has_begun(state: str) -> bool:
    """Whether the device took the attempt on; a refusal is none."""
    return RANKS[state] > 0 and state != "refused"


def has_ended(state: str) -> bool:
    """Whether the device is free again; ``repair-required`` is no end."""
    return RANKS[state] == ENDED
