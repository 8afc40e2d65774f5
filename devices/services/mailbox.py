"""The two mailboxes: what the apps above want devices to have, and what devices say.

Locks are taken in one order everywhere, heads by ascending device, so that two releases can't wait for each other
(case R6). A poll reads a head without a lock and never waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.expressions import CombinedExpression

from agent.wire import canonical
from agent.wire.messages import Message
from devices.models import DesiredDocument, DesiredHead, DesiredItem, ReportInbox
from devices.waiting import bell
from fleet.core import clock

#: Devices per statement: below the parameter limits of both databases (32,766 in SQLite, 65,535 in PostgreSQL).
BATCH = 4000
#: The escape of NUL in JSON, after an even number of backslashes.
_NUL_ESCAPE = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


def document_put(document: Message) -> DesiredDocument:
    """Store a document under its hash; the same document is stored once, and young again (see ``documents_prune``)."""
    row = _row(document, clock.now())
    DesiredDocument.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["hash"], update_fields=["created_at"]
    )
    return row


def heads_lock(*, device_ids: Sequence[int]) -> set[int]:
    """Hold the heads of these devices until the end of the transaction, before anything else is locked (case R6).

    Returns the devices that still exist; until then none of them can be forgotten.
    """
    return {device_id for batch in _batches(device_ids) for device_id in _lock_heads(batch)}


def desired_put_own(*, kind: str, documents: Mapping[int, tuple[str, Message]]) -> None:
    """Give each device (by id) a document of its own under a key of its own; belongs into the caller's transaction.

    The number of statements grows with batches only. The keys are new ones.
    """
    now = clock.now()
    for batch in _batches(list(documents)):
        versions = _lock_heads(batch)
        rows = {device_id: _row(documents[device_id][1], now) for device_id in versions}
        DesiredDocument.objects.bulk_create(
            rows.values(), update_conflicts=True, unique_fields=["hash"], update_fields=["created_at"]
        )
        _bump(versions)
        DesiredItem.objects.bulk_create(
            DesiredItem(
                device_id=device_id,
                kind=kind,
                key=documents[device_id][0],
                version=version + 1,
                document=rows[device_id],
            )
            for device_id, version in versions.items()
        )


def desired_erase_own(*, kind: str, keys: Mapping[int, str]) -> int:
    """As :func:`desired_erase`, of items whose keys (by device) are each device's own."""
    erased = 0
    for batch in _batches(list(keys)):
        versions = _lock_heads(batch)
        own = DesiredItem.objects.filter(kind=kind, key__in=[keys[device_id] for device_id in batch])
        gone, _by_model = own.filter(device_id__in=list(versions)).delete()
        if gone:
            _bump(versions)
        erased += gone
    return erased


def desired_put(*, kind: str, key: str, document: DesiredDocument, device_ids: Sequence[int]) -> None:
    """These devices shall have this document; belongs into the caller's transaction.

    A device that has it already is not told again. The number of statements grows with batches only.
    """
    for batch in _batches(device_ids):
        versions = _lock_heads(batch)
        have = holders(kind, key).filter(device_id__in=batch, document=document, remove=False)
        for device_id in have.values_list("device_id", flat=True):
            versions.pop(device_id, None)
        if not versions:
            continue
        _bump(versions)
        items = [
            DesiredItem(device_id=device_id, kind=kind, key=key, version=version + 1, document=document, remove=False)
            for device_id, version in versions.items()
        ]
        DesiredItem.objects.bulk_create(
            items,
            update_conflicts=True,
            unique_fields=["device", "kind", "key"],
            update_fields=["version", "document", "remove"],
            batch_size=BATCH,
        )


def desired_withdraw(*, kind: str, key: str, device_ids: Sequence[int] | None = None) -> int:
    """Devices that hold this item shall prove to have it no longer (DEP-14); None means all of them.

    Returns how many were told now.
    """
    told = 0
    holding = holders(kind, key).filter(remove=False)
    wanted = list(holding.order_by("device_id").values_list("device_id", flat=True))
    if device_ids is not None:
        wanted = sorted(set(wanted) & set(device_ids))
    for batch in _batches(wanted):
        versions = _lock_heads(batch)
        _bump(versions)
        told += holding.filter(device_id__in=list(versions)).update(
            remove=True, document=None, version=_version_of_head()
        )
    return told


def desired_drop(*, kind: str, key: str, device_ids: Sequence[int]) -> int:
    """Forget items whose removal these devices have proven. Returns how many."""
    dropped = 0
    for batch in _batches(device_ids):
        versions = _lock_heads(batch)
        gone, _by_model = holders(kind, key).filter(device_id__in=list(versions), remove=True).delete()
        if gone:
            _bump(versions)
        dropped += gone
    return dropped


def desired_erase(*, kind: str, key: str, device_ids: Sequence[int]) -> int:
    """Forget items that leave nothing behind on a device, such as a question, so that nothing has to be proven.

    Returns how many.
    """
    erased = 0
    for batch in _batches(device_ids):
        versions = _lock_heads(batch)
        gone, _by_model = holders(kind, key).filter(device_id__in=list(versions)).delete()
        if gone:
            _bump(versions)
        erased += gone
    return erased


def holders(kind: str, key: str) -> QuerySet[DesiredItem]:
    """The items of this key: every device that was told of it and has not proven its removal."""
    return DesiredItem.objects.filter(kind=kind, key=key)


def inbox_put(*, device_id: int, sequence: int, parts: Mapping[str, Any]) -> None:
    """Keep the parts of a report, by kind, until they are taken in: one INSERT, committed when this returns."""
    now = clock.now()
    ReportInbox.objects.bulk_create(
        [
            ReportInbox(device_id=device_id, kind=kind, sequence=sequence, received_at=now, body=canonical.encode(part))
            for kind, part in parts.items()
        ]
    )


def inbox_unread() -> CombinedExpression:
    """About how many rows wait, as a part of another query: two steps down an index, whatever their number."""
    ids = ReportInbox.objects.values("id")
    return Subquery(ids.order_by("-id")[:1]) - Subquery(ids.order_by("id")[:1])


def inbox_take(*, kind: str, limit: int) -> list[ReportInbox]:
    """The oldest unread rows of a kind, locked; rows that somebody else is reading are passed over."""
    rows = ReportInbox.objects.select_for_update(skip_locked=True).filter(kind=kind).order_by("id")
    return list(rows[:limit])


def inbox_body(row: ReportInbox) -> bytes:
    """The JSON of a row, without NUL, which PostgreSQL can't store: U+FFFD stands in its place.

    One device that sends it must not stop the batch that it is in (case R4).
    """
    return _NUL_ESCAPE.sub(rb"\1\\ufffd", bytes(row.body))


def inbox_done(rows: Iterable[ReportInbox]) -> None:
    """Forget rows that were taken in; in the transaction that did."""
    ReportInbox.objects.filter(pk__in=[row.pk for row in rows]).delete()


def _row(document: Message, now: datetime) -> DesiredDocument:
    return DesiredDocument(hash=canonical.digest(document), body=canonical.encode(document), created_at=now)


def _lock_heads(device_ids: Sequence[int]) -> dict[int, int]:
    heads = DesiredHead.objects.select_for_update().filter(device_id__in=device_ids).order_by("device_id")
    return dict(heads.values_list("device_id", "version"))


def _bump(versions: dict[int, int]) -> None:
    DesiredHead.objects.filter(device_id__in=list(versions)).update(version=F("version") + 1)
    bell.ring()


def _version_of_head() -> Subquery:
    return Subquery(DesiredHead.objects.filter(device_id=OuterRef("device_id")).values("version")[:1])


def _batches(device_ids: Sequence[int]) -> Iterator[list[int]]:
    ordered = iter(sorted(set(device_ids)))
    while batch := list(islice(ordered, BATCH)):
        yield batch
