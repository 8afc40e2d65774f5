"""The one sentence that says what an object waits for, and on which devices (DEP-16). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

#: How many devices a sentence names before it counts the others.
NAMED = 3
#: A device's own words are cut to this length, so that a sentence stays one.
MAX_WORDS = 300
_AWAY = ("never", "offline")


@dataclass(frozen=True, slots=True)
class Blocker:
    """A device that is not where it should be, with what is known of it.

    ``since`` is the time of its last change of connectivity, ``reported_at`` that of its last report about this
    revision; both by the control plane's clock.
    """

    device: str
    canary: bool = False
    forgotten: bool = False
    failed: bool = False
    converged: bool = False
    connectivity: str = "online"
    since: datetime | None = None
    reported_at: datetime | None = None
    message: str = ""


def moment(at: datetime, now: datetime) -> str:
    """``14:02 UTC``, with the date when it is more than a day away."""
    at = at.astimezone(UTC)
    near = abs(now - at) < timedelta(hours=24)
    return f"{at:%H:%M} UTC" if near else f"{at:%Y-%m-%d %H:%M} UTC"


def in_one_line(message: str) -> str:
    """A device's message as a part of a sentence: its lines behind one another, a long one without its middle.

    What went wrong is said first, and the last line of a log is the one that says why.
    """
    line = " / ".join(part.strip() for part in message.splitlines() if part.strip()).rstrip(" .")
    if len(line) <= MAX_WORDS:
        return line
    head = MAX_WORDS // 2
    return f"{line[:head]}…{line[len(line) - (MAX_WORDS - head - 1) :]}"


def why(blocker: Blocker, now: datetime) -> str:
    """What holds this device up, as the rest of a sentence after its name."""
    if blocker.forgotten:
        return "the device was forgotten"
    if blocker.failed:
        return in_one_line(blocker.message) or "no reason was given"
    if blocker.connectivity == "never":
        return "has never reported"
    if blocker.connectivity == "offline":
        return f"offline since {moment(blocker.since, now)}" if blocker.since else "offline"
    if blocker.converged and blocker.reported_at:
        return f"converged, but a report newer than that of {moment(blocker.reported_at, now)} is needed"
    return in_one_line(blocker.message) or "has not reported on this revision yet"


def named(blockers: Sequence[Blocker], total: int, now: datetime) -> str:
    """``edge-2 (offline since 14:02 UTC), edge-3 (pulling image) and 4 more``."""
    return _listed([f"{blocker.device} ({_why_in_a_list(blocker, now)})" for blocker in blockers], total)


def names(devices: Sequence[str]) -> str:
    """``edge-2, edge-3, edge-4 and 4 more``."""
    return _listed(devices, len(devices))


def _listed(parts: Sequence[str], total: int) -> str:
    shown = parts[:NAMED]
    more = total - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _why_in_a_list(blocker: Blocker, now: datetime) -> str:
    reason = why(blocker, now)
    return f"failed: {reason}" if blocker.failed and not blocker.forgotten else reason


def waiting(blockers: Sequence[Blocker], *, missing: int, total: int, canaries: bool, now: datetime) -> str:
    """``Waiting for canary edge-7: …`` or ``Waiting for 3 of 10 devices: …``."""
    if missing == 1 and blockers:
        role = "canary " if canaries else ""
        return f"Waiting for {role}{blockers[0].device}: {_why_in_a_list(blockers[0], now)}"
    what = "canaries" if canaries else "devices"
    listed = f": {named(blockers, missing, now)}" if blockers else ""
    return f"Waiting for {missing} of {total} {what}{listed}"


def failed(blockers: Sequence[Blocker], *, count: int, total: int, canaries: bool, now: datetime) -> str:
    """``Canary edge-7 failed: …; fix it or apply a new revision``."""
    words = failures(blockers, count=count, total=total, canaries=canaries, now=now)
    return f"{words}; {_advice(blockers, 'it' if count == 1 and blockers else 'them')}"


def failures(blockers: Sequence[Blocker], *, count: int, total: int, canaries: bool, now: datetime) -> str:
    """``Canary edge-7 failed: …`` or ``2 of 5 devices failed: edge-1 (…), edge-2 (…)``."""
    if count == 1 and blockers:
        role = "Canary " if canaries else ""
        return f"{role}{blockers[0].device} failed: {why(blockers[0], now)}"
    what = "canaries" if canaries else "devices"
    listed = _listed([f"{blocker.device} ({why(blocker, now)})" for blocker in blockers], count)
    return f"{count} of {total} {what} failed: {listed}"


def _advice(blockers: Sequence[Blocker], whom: str) -> str:
    if blockers and all(blocker.forgotten for blocker in blockers):
        return f"retarget to leave {whom} out"
    return f"fix {whom} or apply a new revision"


def removing(blockers: Sequence[Blocker], *, total: int, give_up: str, now: datetime) -> str:
    """``Waiting for edge-3 to remove its containers: offline since 14:02 UTC; …`` (DEP-14).

    ``give_up`` is the command that ends the wait for a device, which is named after it; said when one is away.
    """
    away = next((blocker.device for blocker in blockers if blocker.connectivity in _AWAY), "")
    advice = f"; if {'it' if total == 1 else away} will not come back: {give_up} {away}" if away else ""
    if total == 1 and blockers:
        reason = _why_not_removed(blockers[0], now)
        return f"Waiting for {blockers[0].device} to remove its containers: {reason}{advice}"
    listed = _listed([f"{blocker.device} ({_why_not_removed(blocker, now)})" for blocker in blockers], total)
    return f"Waiting for {total} devices to remove their containers: {listed}{advice}"


def _why_not_removed(blocker: Blocker, now: datetime) -> str:
    if blocker.connectivity in _AWAY or blocker.message:
        return why(blocker, now)
    return "has not confirmed it yet"
