"""Freeze and release of 10,000 targets against the same rows by bare bulk INSERT and UPDATE."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from bench import fleet
from bench.figures import Figure
from bench.installation import Installation
from devices.models import DesiredHead, DesiredItem, Device
from fleet.core import clock
from rollouts import services
from rollouts.models import Deployment, Revision, Target

TARGETS = 10_000
ROUNDS = 3
BATCH = 2000


def measure(installation: Installation) -> list[Figure]:
    """Each round freezes and releases a new deployment, then writes and deletes the same rows bare."""
    fleet.in_bulk(TARGETS)
    product, bare = [], []
    for number in range(ROUNDS):
        deployment = fleet.applied(f"bulk-{number}", "bulk")
        revision = deployment.revisions.get()
        product.append(_seconds(partial(services.revision_evaluate, revision_id=revision.pk)))
        _check(deployment)
        bare.append(_bare(revision))
    few, many = _statements()
    return [
        Figure(
            "freeze and release of 10,000 targets",
            statistics.median(product),
            statistics.median(bare),
            "s",
            3,
            False,
            "bare bulk INSERT and UPDATE of the same rows",
        ),
        Figure("statements for 10,000 targets by batches", many, few, "", 5, False, "for 2,000 targets"),
    ]


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _check(deployment: Deployment) -> None:
    released = Target.objects.filter(revision__deployment=deployment, state="released").count()
    told = DesiredItem.objects.filter(key=str(deployment.uid)).count()
    if (released, told) != (TARGETS, TARGETS):
        raise RuntimeError(f"{released} targets were released and {told} devices told; expected {TARGETS}")


def _bare(revision: Revision) -> float:
    """The same rows again, as directly as Django writes them: targets, items, heads; then targets as released."""
    targets = list(revision.targets.all())
    items = list(DesiredItem.objects.filter(key=str(revision.deployment.uid)))
    revision.targets.all().delete()
    DesiredItem.objects.filter(key=str(revision.deployment.uid)).delete()
    for row in [*targets, *items]:
        row.pk = None
        row._state.adding = True

    @transaction.atomic
    def write() -> None:
        Target.objects.bulk_create(targets, batch_size=BATCH)
        DesiredItem.objects.bulk_create(items, batch_size=BATCH)
        DesiredHead.objects.update(version=F("version") + 1)
        Target.objects.filter(revision=revision).update(released_at=clock.now(), since=clock.now(), message="")

    return _seconds(write)


def _statements() -> tuple[int, int]:
    found = []
    for size in (TARGETS // 5, TARGETS):
        deployment = fleet.applied(f"count-{size}", "bulk")
        revision = deployment.revisions.get()
        _narrow(revision, size)
        with CaptureQueriesContext(connection) as captured:
            services.revision_evaluate(revision_id=revision.pk)
        found.append(len(captured))
    return found[0], found[1]


def _narrow(revision: Revision, size: int) -> None:
    """Let the selector match the first ``size`` devices only."""
    wanted = list(Device.objects.filter(labels__role="bulk").order_by("pk")[:size])
    for row in wanted:
        row.labels = {**row.labels, "batch": str(size)}
    Device.objects.bulk_update(wanted, ["labels"], batch_size=500)
    revision.spec["targetSelector"] = {"matchLabels": {"batch": str(size)}}
    Revision.objects.filter(pk=revision.pk).update(spec=revision.spec)
