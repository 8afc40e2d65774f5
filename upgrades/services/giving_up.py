"""The exit for an attempt that a device took on and never spoke of again."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from devices.services import mailbox
from fleet.core import audit, clock
from fleet.core.errors import Conflict
from upgrades import policy
from upgrades.models import NEEDS_ROOT, Attempt, State
from upgrades.services.offering import attempts_tidy

KIND = "Attempt"


def attempt_give_up(*, attempt: Attempt, actor: User | None) -> None:
    """Wait for this attempt no more: it counts as failed, and the device may be asked for another one (TSK-5).

    Nothing is interrupted on the device. Should it come back and say how it went, that is written down, and a completed
    upgrade counts as completed; one that still needs repair is taken again. Giving up twice changes nothing.

    Raises:
        Conflict: the device has not begun, or has said how it went.
    """
    with transaction.atomic():
        mailbox.heads_lock(device_ids=[attempt.device_id] if attempt.device_id else [])
        fresh = Attempt.objects.select_for_update().get(pk=attempt.pk)
        if fresh.state == State.GIVEN_UP:
            return
        if not policy.may_be_given_up(fresh.state):
            allowed = f"accepted, running, {' or '.join(policy.NEEDS_ROOT)}"
            raise Conflict(f"the attempt of {fresh} is {fresh.state}; allowed: {allowed}")
        who = actor.get_username() if actor else "the system"
        fresh.message = f"given up by {who}: {_why(fresh)}"
        fresh.state, fresh.ended_at = State.GIVEN_UP, clock.now()
        fresh.save(update_fields=["state", "message", "ended_at"])
        audit.record(actor=actor, action="give-up", kind=KIND, name=str(fresh))
        transaction.on_commit(attempts_tidy)


def _why(attempt: Attempt) -> str:
    if attempt.state in NEEDS_ROOT:
        return "it was never said that root has repaired the device"
    return "the device did not say how it went" + (f", last heard at {attempt.step}" if attempt.step else "")
