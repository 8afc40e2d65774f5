"""Housekeeping: documents that nobody refers to any more, and the epoch after a restore (AGT-9)."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Max

from devices.models import DesiredDocument, DesiredHead
from devices.waiting import bell
from fleet.core import audit, clock

#: A document may be written some time before its revision; younger ones are left alone.
DOCUMENT_GRACE = timedelta(days=1)


def documents_prune(*, limit: int = 1000) -> int:
    """Delete old documents without an item or a revision; returns how many.

    ``document_put`` makes a document young again, under the lock that is passed over here: one that is about to be
    released is never deleted.
    """
    unused = {f"{each.name}__isnull": True for each in DesiredDocument._meta.related_objects}
    old = DesiredDocument.objects.filter(created_at__lt=clock.now() - DOCUMENT_GRACE)
    with transaction.atomic():
        locked = old.select_for_update(skip_locked=True, of=("self",)).filter(**unused)[:limit]
        hashes = [document.hash for document in locked]
        # Looked up again, because the locks came after the first look.
        pruned, _by_model = old.filter(hash__in=hashes, **unused).delete()
    return pruned


def epoch_begin(*, actor: User | None = None) -> int:
    """Tell all devices that versions count anew, after the database was restored from a backup; the new epoch."""
    with transaction.atomic():
        # Locked in the order of releases (case R6).
        list(DesiredHead.objects.select_for_update().order_by("device_id").values_list("pk"))
        epoch = int(DesiredHead.objects.aggregate(highest=Max("epoch"))["highest"] or 1) + 1
        DesiredHead.objects.update(epoch=epoch, version=F("version") + 1)
        bell.ring()
        audit.record(actor=actor, action="new-epoch", kind="Fleet", name="fleet", detail={"epoch": epoch})
    return epoch
