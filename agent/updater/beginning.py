"""Whether an attempt that was taken on may begin: the same rules for every executor (TSK-4). Pure."""

from __future__ import annotations

from agent.updater.actions import Seen, Wait, Write
from agent.updater.attempt import ACCEPTED, Attempt
from agent.updater.journal import Event, Record
from agent.updater.steps import TIME_LIMIT_SECONDS, Step
from agent.wire.messages import AttemptState

SOON, LATER = 2.0, 30.0


def begin(attempt: Attempt, seen: Seen, first: Step) -> Write | Wait:
    """What comes next for an attempt that has not begun. Remaining seconds count on this boot's clock only."""
    if needs_time(attempt, seen.boot_id):
        if seen.uptime >= TIME_LIMIT_SECONDS:
            return _fail("Nobody said for a day whether it may still begin; nothing was changed")
        return Wait(LATER, "The device was started anew; waits to hear whether it may still begin")
    if seen.uptime >= (attempt.deadline.deadline or 0.0):
        return _fail("The deadline passed before it could begin; nothing was changed")
    return Write(first.name, Event.BEGAN, first.begins, state=AttemptState.RUNNING, deed=first.deed)


def needs_time(attempt: Attempt, boot_id: str) -> bool:
    """Whether the device was started anew since this attempt, which has not begun, was given its seconds (TSK-4)."""
    return not attempt.has_begun and attempt.deadline.boot_id != boot_id


def is_cut_off(attempt: Attempt, seen: Seen) -> bool:
    """Whether updater or device were started anew since the last record."""
    return seen.resumed or attempt.last.boot_id != seen.boot_id


def since(record: Record, seen: Seen) -> float:
    """Seconds since a record, or since the boot when it is of an earlier one."""
    return seen.uptime - record.uptime if record.boot_id == seen.boot_id else seen.uptime


def _fail(message: str) -> Write:
    return Write(ACCEPTED, Event.FAILED, message, state=AttemptState.FAILED)
