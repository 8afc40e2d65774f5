"""Attempts are offered through the mailbox, and taken out of it when they are over.

Locks are taken in one order: heads of devices (ascending), then attempts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from agent.wire.messages import ATTEMPT_KIND, AttemptDocument
from devices.models import DesiredItem
from devices.services import mailbox
from fleet.core import clock
from upgrades.models import OPEN, Attempt, State
from upgrades.selectors import open_attempts

BATCH = 2000


@dataclass(frozen=True, slots=True)
class Offer:
    """What devices are offered; ``task`` is ``namespace/name``, ``title`` what people read."""

    executor: str
    task: str
    title: str
    begin_until: datetime


def attempts_offer(*, devices: Mapping[int, str], offer: Offer) -> dict[int, Attempt]:
    """Offer an attempt to each of these devices (names by id) that still exists and has no open one (TSK-5).

    Returns those that were made, by device. Inside the caller's transaction; the devices' heads are locked first, so
    that of two offers at once one sees the other's.
    """
    there = mailbox.heads_lock(device_ids=list(devices))
    taken = set(open_attempts(devices).values_list("device_id", flat=True))
    now = clock.now()
    made = [
        Attempt(
            device_id=device_id,
            device_name=name,
            executor=offer.executor,
            title=offer.title,
            begin_until=offer.begin_until,
            offered_at=now,
        )
        for device_id, name in sorted(devices.items())
        if device_id in there and device_id not in taken
    ]
    Attempt.objects.bulk_create(made, batch_size=BATCH)
    mailbox.desired_put_own(
        kind=ATTEMPT_KIND,
        documents={
            attempt.device_id: (str(attempt.uid), _document(attempt, offer))
            for attempt in made
            if attempt.device_id is not None
        },
    )
    return {attempt.device_id: attempt for attempt in made if attempt.device_id is not None}


def _document(attempt: Attempt, offer: Offer) -> AttemptDocument:
    return AttemptDocument(attempt=str(attempt.uid), task=offer.task, executor=offer.executor)


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
    if not stale:
        return 0
    with transaction.atomic():
        return mailbox.desired_erase_own(kind=ATTEMPT_KIND, keys=dict(stale))
