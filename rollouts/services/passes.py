"""What the periodic jobs do: one pass each over everything that may need it. An error of one stops no other (R4)."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from devices.selectors import candidates
from fleet.core import clock
from fleet.core.fsm import locked
from fleet.core.jobs import each
from rollouts import policy
from rollouts.models import FROZEN_PHASES, Revision
from rollouts.selectors import deployments_to_remove, latecomers, live_revisions, revisions_to_evaluate
from rollouts.services.ending import deployment_evaluate_removal
from rollouts.services.evaluation import revision_evaluate
from rollouts.services.reports import reports_drain


def drain_deployments(*, limit: int) -> int:
    """Take a batch of reports in, then evaluate what they touched; returns the number of inbox rows taken."""
    drained = reports_drain(limit=limit)
    if drained.touched:
        evaluate_touched(drained.touched)
    return drained.rows


def evaluate_touched(uids: Collection[UUID]) -> None:
    """Evaluate the deployments with these uids, live or on their way out."""
    live = live_revisions().filter(deployment__uid__in=uids).values_list("pk", flat=True)
    each(list(live), _evaluate_revision)
    leaving = deployments_to_remove().filter(uid__in=uids).values_list("pk", flat=True)
    each(list(leaving), _evaluate_removal)


def sweep() -> None:
    """Evaluate whatever may have something to do: what a lost bell left (R10), devices that went offline (R1)."""
    each(revisions_to_evaluate(), _evaluate_revision)
    each(list(deployments_to_remove().values_list("pk", flat=True)), _evaluate_removal)


def _evaluate_revision(pk: int) -> None:
    revision_evaluate(revision_id=pk)


def _evaluate_removal(pk: int) -> None:
    deployment_evaluate_removal(deployment_id=pk)


def count_latecomers() -> None:
    """Count and name, for every frozen live revision, the devices that match but came too late (DEP-10)."""
    devices = candidates()

    def count(revision: Revision) -> None:
        names = latecomers(revision, devices)
        if names is not None:
            _note_latecomers(revision, names)

    each(list(live_revisions().filter(phase__in=FROZEN_PHASES).select_related("deployment")), count)


def _note_latecomers(revision: Revision, names: list[str]) -> None:
    with locked(Revision, revision.pk) as fresh:
        fresh.latecomers = len(names)
        fresh.conditions = policy.latecomer_conditions(
            fresh.conditions,
            names,
            retarget=f"fleetctl retarget {revision.deployment}",
            now=clock.now(),
            generation=fresh.generation,
        )
