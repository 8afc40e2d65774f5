"""Housekeeping: documents that nobody refers to any more, and the epoch after a restore (AGT-9)."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Max, ProtectedError

from devices.models import DesiredDocument, DesiredHead
from fleet.core import audit, clock

#: A document may be written some time before its revision; younger ones are left alone.
DOCUMENT_GRACE = timedelta(days=1)


def documents_prune(*, limit: int = 1000) -> int:
    """Delete old documents without an item or a revision; returns how many."""
    old = DesiredDocument.objects.filter(created_at__lt=clock.now() - DOCUMENT_GRACE, desireditem__isnull=True)
    pruned = 0
    for document in old[:limit]:
        try:
            document.delete()
            pruned += 1
        except ProtectedError:
            continue  # a revision of the apps above keeps it
    return pruned


def epoch_begin(*, actor: User | None = None) -> int:
    """Tell all devices that versions count anew, after the database was restored from a backup; the new epoch."""
    with transaction.atomic():
        epoch = int(DesiredHead.objects.aggregate(highest=Max("epoch"))["highest"] or 1) + 1
        DesiredHead.objects.update(epoch=epoch, version=F("version") + 1)
        audit.record(actor=actor, action="new-epoch", kind="Fleet", name="fleet", detail={"epoch": epoch})
    return epoch
