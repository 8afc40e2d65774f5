"""Celery's entry point: one pass over the cluster, as often as its status may be written (K8S-2, K8S-8)."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from fleet.core.jobs import periodic, scheduled
from fleet.kube.services import cluster_sync

SYNC_SECONDS = 5.0
#: A killed worker keeps the next pass waiting for so long; two at once repair the same things twice, no more.
LEASE_SECONDS = 60


@periodic("kube.sync", lease_seconds=LEASE_SECONDS)
def sync() -> None:
    """Repair whatever differs between the cluster and us."""
    if settings.FLEET_KUBECONFIG:
        from fleet.kube.client import Cluster  # noqa: PLC0415  (the library is large, and most processes need none of it)

        cluster_sync(cluster=Cluster(settings.FLEET_KUBECONFIG))


#: Without a cluster there is nothing to look at.
SCHEDULE: dict[str, dict[str, Any]] = {"kube-sync": scheduled(sync, SYNC_SECONDS)} if settings.FLEET_KUBECONFIG else {}
