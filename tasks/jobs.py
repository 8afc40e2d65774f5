"""Celery's entry points: each calls one service, takes ids only, and may run twice at once (R14)."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from django.conf import settings

from fleet.core.jobs import periodic, scheduled
from tasks import services

#: Inbox rows per transaction, and batches per run.
BATCH = 500
MOST_BATCHES = 40
#: Seconds that a killed worker delays the next one; draining twice at once is harmless.
DRAIN_LEASE = 10


@periodic("tasks.drain_attempts", lease_seconds=DRAIN_LEASE)
def drain_attempts() -> None:
    """Take in what devices said about attempts, until the inbox is empty."""
    for _ in range(MOST_BATCHES):
        if services.drain_attempts(limit=BATCH) < BATCH:
            return


@periodic("tasks.sweep")
def sweep() -> None:
    """Evaluate whatever may have something to do, deadlines included."""
    services.sweep()


@shared_task(name="tasks.evaluate_run")
def evaluate_run(run_id: int) -> None:
    """The step that is due for one run."""
    services.taskrun_evaluate(run_id=run_id)


@shared_task(name="tasks.run_schedule")
def run_schedule(schedule_id: int) -> None:
    """The run of one schedule's time; beat rings at each."""
    services.schedule_tick(schedule_id=schedule_id)


SCHEDULE: dict[str, dict[str, Any]] = {
    "tasks.drain_attempts": scheduled(drain_attempts, settings.FLEET_DRAIN_SECONDS),
    "tasks.sweep": scheduled(sweep, settings.FLEET_SWEEP_SECONDS),
}
