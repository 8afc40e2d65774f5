"""Bells after commit. A lost one costs time only: the sweep looks for itself (R10, R13)."""

from __future__ import annotations

from fleet.core.jobs import enqueue


def ring_for_run(run_id: int) -> None:
    """Have this run evaluated soon after the transaction."""
    from tasks import jobs  # noqa: PLC0415  (jobs call services)

    enqueue(jobs.evaluate_run, run_id)


def ring_for_sweep() -> None:
    """Have all runs looked at soon after the transaction."""
    from tasks import jobs  # noqa: PLC0415  (jobs call services)

    enqueue(jobs.sweep)
