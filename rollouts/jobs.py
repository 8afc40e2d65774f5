"""Celery's entry points: each calls one service, takes ids only, and may run twice at once (R14)."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from django.conf import settings

from fleet.core.jobs import periodic, scheduled
from rollouts import services

#: Inbox rows per transaction: large enough for few statements, small enough for short locks.
BATCH = 500
#: Batches per run, so that one run ends well within its lease even under a flood.
MOST_BATCHES = 40
#: Seconds that a killed worker delays the next one; draining twice at once is harmless.
DRAIN_LEASE = 10
LATECOMER_SECONDS = 30.0
LOGS_SECONDS = 30.0


@periodic("rollouts.drain_reports", lease_seconds=DRAIN_LEASE)
def drain_reports() -> None:
    """Take in what devices said about deployments, until the inbox is empty."""
    for _ in range(MOST_BATCHES):
        if services.drain_deployments(limit=BATCH) < BATCH:
            return


@periodic("rollouts.sweep")
def sweep() -> None:
    """Evaluate whatever may have something to do."""
    services.sweep()


@periodic("rollouts.count_latecomers")
def count_latecomers() -> None:
    """Count the devices that match and came after the freeze (DEP-10)."""
    services.count_latecomers()


@periodic("rollouts.tidy_logs")
def tidy_logs() -> None:
    """End requests for logs that nobody answered, and forget old answers (AGT-16)."""
    services.logs_tidy()


@shared_task(name="rollouts.evaluate_revision")
def evaluate_revision(revision_id: int) -> None:
    """The step that is due for one revision."""
    services.revision_evaluate(revision_id=revision_id)


@shared_task(name="rollouts.evaluate_deployment")
def evaluate_deployment(deployment_id: int) -> None:
    """The step that is due for one deployment that is being removed."""
    services.deployment_evaluate_removal(deployment_id=deployment_id)


SCHEDULE: dict[str, dict[str, Any]] = {
    "rollouts.drain_reports": scheduled(drain_reports, settings.FLEET_DRAIN_SECONDS),
    "rollouts.sweep": scheduled(sweep, settings.FLEET_SWEEP_SECONDS),
    "rollouts.count_latecomers": scheduled(count_latecomers, LATECOMER_SECONDS),
    "rollouts.tidy_logs": scheduled(tidy_logs, LOGS_SECONDS),
}
