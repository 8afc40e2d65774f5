"""Attempts are offered through the mailbox, and taken out of it when they are over.

Locks are taken in one order: heads of devices (ascending), then attempts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from agent.wire.manifest import AgentUpgrade
from agent.wire.messages import ATTEMPT_KIND, AttemptDocument
from devices.models import DesiredItem
from devices.services import mailbox
from fleet.core import clock
from upgrades.models import OPEN, Attempt, State
from upgrades.selectors import open_attempts

BATCH = 2000


@dataclass(frozen=True, slots=True)
class Offer:
    """What a device is offered; ``title`` is what people read.

    ``task`` is ``namespace/name``, empty when the device's own spec asks for it; ``agent_upgrade`` belongs to
    ``agentUpgradeV1``.
    """

    executor: str
    task: str
    title: str
    begin_until: datetime
    agent_upgrade: AgentUpgrade | None = None


def attempts_offer(*, devices: Mapping[int, str], offer: Offer) -> dict[int, Attempt]:
    """:func:`attempts_offer_each` of the same offer to all of these devices (names by id)."""
    return attempts_offer_each(devices=devices, offers=dict.fromkeys(devices, offer))


def attempts_offer_each(*, devices: Mapping[int, str], offers: Mapping[int, Offer]) -> dict[int, Attempt]:
    """Offer each of these devices (names by id) its own attempt, if it still exists and has no open one (TSK-5).

    Returns those that were made, by device. Inside the caller's transaction; the devices' heads are locked first, so
    that of two offers at once one sees the other's. The number of statements grows with batches only.
    """
    there = mailbox.heads_lock(device_ids=list(devices))
    taken = set(open_attempts(devices).values_list("device_id", flat=True))
    free = [device_id for device_id in sorted(devices) if device_id in there and device_id not in taken]
    made = {device_id: _attempt(device_id, devices[device_id], offers[device_id]) for device_id in free}
    Attempt.objects.bulk_create(made.values(), batch_size=BATCH)
    documents = {
        device_id: (str(attempt.uid), _document(attempt, offers[device_id])) for device_id, attempt in made.items()
    }
    mailbox.desired_put_own(kind=ATTEMPT_KIND, documents=documents)
    return made


def _attempt(device_id: int, name: str, offer: Offer) -> Attempt:
    return Attempt(
        device_id=device_id,
        device_name=name,
        executor=offer.executor,
        title=offer.title,
        agent_upgrade=msgspec.to_builtins(offer.agent_upgrade),
        begin_until=offer.begin_until,
        offered_at=clock.now(),
    )


def _document(attempt: Attempt, offer: Offer) -> AttemptDocument:
    return AttemptDocument(
        attempt=str(attempt.uid), task=offer.task, executor=offer.executor, agent_upgrade=offer.agent_upgrade
    )


def attempts_withdraw(*, attempts: QuerySet[Attempt], device_ids: Sequence[int]) -> int:
    """Take back what no device has begun; what has begun goes on. Returns how many were taken back.

    ``device_ids`` are those of the attempts. Inside the caller's transaction.
    """
    mailbox.heads_lock(device_ids=device_ids)
    # Locked one by one in the order in which a drain locks them: an UPDATE takes them as it finds them.
    offered = attempts.filter(state=State.OFFERED).select_for_update(of=("self",)).order_by("pk")
    withdrawn = Attempt.objects.filter(pk__in=list(offered.values_list("pk", flat=True))).update(
        state=State.WITHDRAWN, ended_at=clock.now()
    )
    if withdrawn:
        transaction.on_commit(attempts_tidy)
    return withdrawn


def attempts_tidy() -> int:
    """Take items whose attempts are over out of the devices' desired states; returns how many.

    Level-triggered: a call that was missed is made up by the next.
    """
    # Items first: an attempt that is offered between the two reads is no item here, so it can't look stale.
    items = list(DesiredItem.objects.filter(kind=ATTEMPT_KIND).values_list("device_id", "key"))
    uids = {str(uid) for uid in Attempt.objects.filter(state__in=OPEN).values_list("uid", flat=True)} if items else ()
    stale = [(device_id, key) for device_id, key in items if key not in uids]
    erased = 0
    while stale:
        one_each = dict(stale)
        with transaction.atomic():
            erased += mailbox.desired_erase_own(kind=ATTEMPT_KIND, keys=one_each)
        stale = [(device_id, key) for device_id, key in stale if one_each[device_id] != key]
    return erased
