"""Bells after commit. A lost one costs time only: the sweep looks for itself (R10, R13)."""

from __future__ import annotations

from fleet.core.jobs import enqueue


def ring_for_revision(revision_id: int) -> None:
    """Have this revision evaluated soon after the transaction."""
    from rollouts import jobs  # noqa: PLC0415  (jobs call services)

    enqueue(jobs.evaluate_revision, revision_id)


def ring_for_deployment(deployment_id: int) -> None:
    """Have this deployment's removal looked at soon after the transaction."""
    from rollouts import jobs  # noqa: PLC0415  (jobs call services)

    enqueue(jobs.evaluate_deployment, deployment_id)


def ring_for_sweep() -> None:
    """Have everything looked at soon after the transaction."""
    from rollouts import jobs  # noqa: PLC0415  (jobs call services)

    enqueue(jobs.sweep)
