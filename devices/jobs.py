"""Periodic work on devices."""

from __future__ import annotations

from django.conf import settings

from devices.services.reports import drain_facts, sweep_connectivity
from devices.services.upkeep import documents_prune
from fleet.core.jobs import periodic, scheduled

HOUR = 3600.0
BATCH = 2000
#: Seconds that a killed worker delays the next one.
DRAIN_LEASE = 10
#: Batches in one run, so that a flood can't keep the lease for ever.
MOST_BATCHES = 20


@periodic("devices.drain_facts", lease_seconds=DRAIN_LEASE)
def drain() -> None:
    """Take in unread facts until none is left."""
    for _ in range(MOST_BATCHES):
        if drain_facts(limit=BATCH) < BATCH:
            break


@periodic("devices.sweep_connectivity")
def sweep() -> None:
    """Notice who has fallen silent."""
    sweep_connectivity()


@periodic("devices.prune_documents")
def prune() -> None:
    """Forget documents that nobody needs."""
    documents_prune()


SCHEDULE = {
    drain.name: scheduled(drain, settings.FLEET_DRAIN_SECONDS),
    sweep.name: scheduled(sweep, settings.FLEET_SWEEP_SECONDS),
    prune.name: scheduled(prune, HOUR),
}
