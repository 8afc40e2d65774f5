"""What a waiting process asks the database: who these are, whether anything changed at all, and what.

A look compares *states*, not times: a transaction that commits long after it wrote can't slip past it, as it could
past "what was changed since my last look".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django.db import close_old_connections
from django.db.models import Count, Sum

from devices.models import Credential, DesiredHead
from devices.polling import Head


class Mark(NamedTuple):
    """Differs when any head does; but for a coincidence, which the next request of the device finds."""

    devices: int
    epochs: int
    versions: int


def heads_of(token_hashes: Collection[str]) -> dict[str, Head]:
    """The heads that belong to these credentials, by their hash; unknown ones are missing."""
    close_old_connections()
    known = Credential.objects.filter(token_hash__in=token_hashes, device__desiredhead__isnull=False)
    columns = ("token_hash", "device_id", "device__desiredhead__epoch", "device__desiredhead__version")
    return {token_hash: Head(*head) for token_hash, *head in known.values_list(*columns)}


def mark() -> Mark:
    """One row over all heads: some milliseconds for thousands."""
    close_old_connections()
    found = DesiredHead.objects.aggregate(devices=Count("pk"), epochs=Sum("epoch"), versions=Sum("version"))
    return Mark(found["devices"], int(found["epochs"] or 0), int(found["versions"] or 0))


def etags() -> dict[int, str]:
    """What a poll of each device would be answered with, by device."""
    rows = DesiredHead.objects.values_list("device_id", "epoch", "version")
    return {head.device_id: head.etag for head in (Head(*row) for row in rows)}
