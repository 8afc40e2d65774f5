"""Pages and the status object."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Case, CharField, F, FilteredRelation, Q, QuerySet, Value, When

from agent.wire.messages import DEPLOYMENT_KIND
from devices.models import DesiredItem
from fleet.core import clock
from fleet.targeting import wording
from fleet.targeting.models import TargetState
from rollouts import images
from rollouts.models import DELETING, LIVE_PHASES, Deployment, Life, Phase, PhaseChange, Revision, Target
from rollouts.selectors.matching import spec_of

#: How many unfinished targets a status lists before it counts the others.
MAX_STATUS_TARGETS = 50
#: A converged revision is looked at this often even if nobody rang.
CONVERGED_LOOK = timedelta(seconds=60)

_CURRENT = (
    "message",
    "matched",
    "released",
    "converged",
    "failed",
    "offline",
    "latecomers",
    "phase_since",
    "frozen_at",
    "opened_at",
)


def deployment_list() -> QuerySet[Deployment]:
    """Deployments with where their current revision stands: one query.

    Annotated: ``phase`` (``Deleting`` included), ``message``, ``matched``, ``released``, ``converged``, ``failed``,
    ``offline``, ``latecomers``, ``phase_since``, ``frozen_at``, ``opened_at``, ``revision_id``, ``conditions``.
    """
    current = FilteredRelation("revisions", condition=Q(revisions__generation=F("generation")))
    deleting = Q(life=Life.DELETING)
    fields: dict[str, Any] = {name: F(f"current__{name}") for name in _CURRENT}
    fields["message"] = Case(When(deleting, then=F("removal_message")), default=F("current__message"))
    fields["phase_since"] = Case(When(deleting, then=F("deleting_since")), default=F("current__phase_since"))
    rows: QuerySet[Deployment] = Deployment.objects.annotate(current=current).annotate(
        phase=Case(When(deleting, then=Value(DELETING)), default=F("current__phase"), output_field=CharField()),
        revision_id=F("current__pk"),
        conditions=F("current__conditions"),
        **fields,
    )
    return rows


def current_revision(deployment: Deployment) -> Revision:
    """The revision of the newest generation.

    Raises:
        Revision.DoesNotExist: never for a deployment that was applied.
    """
    return deployment.revisions.select_related("deployment").get(generation=deployment.generation)


def live_revisions() -> QuerySet[Revision]:
    """Revisions that the evaluation still moves, the oldest look first."""
    rows: QuerySet[Revision] = Revision.objects.filter(phase__in=LIVE_PHASES, deployment__life=Life.ACTIVE)
    return rows.order_by(F("evaluated_at").asc(nulls_first=True), "pk")


def targets_of(revision: Revision) -> QuerySet[Target]:
    """The frozen set, canaries first, with what each device said and when it was heard: one query.

    Annotated: ``observed_state``, ``observed_revision``, ``observed_message``, ``observed_since`` (device's clock),
    ``images`` (digests by container), ``reported_at``, ``connectivity``, ``connectivity_since``, ``last_seen``.
    All are None for a device that was forgotten.
    """
    seen = FilteredRelation(
        "device__observations",
        condition=Q(device__observations__deployment_uid=revision.deployment.uid),
    )
    return (
        revision.targets.annotate(seen=seen)
        .annotate(
            observed_state=F("seen__state"),
            observed_revision=F("seen__revision"),
            observed_message=F("seen__message"),
            observed_since=F("seen__since"),
            images=F("seen__images"),
            reported_at=F("device__deployments_report__reported_at"),
            connectivity=F("device__heartbeat__connectivity"),
            connectivity_since=F("device__heartbeat__connectivity_since"),
            last_seen=F("device__heartbeat__last_seen"),
        )
        .order_by("-canary", "device_name")
    )


def blocker(target: Target) -> wording.Blocker:
    """A row of :func:`targets_of` in the terms of a sentence."""
    row: Any = target  # its annotations
    return wording.Blocker(
        device=target.device_name,
        canary=target.canary,
        forgotten=target.device_id is None,
        failed=target.state == TargetState.FAILED,
        converged=target.state == TargetState.CONVERGED,
        connectivity=row.connectivity or "",
        since=row.connectivity_since,
        reported_at=row.reported_at,
        message=target.message,
    )


def target_row(target: Target) -> dict[str, Any]:
    """One target as API and CLI show it (DEP-15), from a row of :func:`targets_of`. Times are aware datetimes."""
    row: Any = target
    return {
        "device": target.device_name,
        "canary": target.canary,
        "state": target.state,
        "message": _standing(target),
        "since": target.since,
        "releasedAt": target.released_at,
        "reason": target.reason,
        "connectivity": row.connectivity or "forgotten",
        "connectivitySince": row.connectivity_since,
        "observedRevision": row.observed_revision,
        "images": row.images or {},
    }


def _standing(target: Target) -> str:
    if target.state == TargetState.CONVERGED:
        return ""
    if target.state == TargetState.ENDED:
        return "the rollout ended before this device was told"
    if target.state == TargetState.HELD and target.device_id is not None:
        return "waits for the canaries"
    return wording.why(blocker(target), clock.now())


def deployment_status(deployment: Deployment) -> dict[str, Any]:
    """The status object that every entrance shows (DEP-15, DEP-16): four queries.

    ``targets`` are the first 50 that are not converged; ``targetsOmitted`` counts the others of that kind.
    """
    revision = current_revision(deployment)
    deleting = deployment.life == Life.DELETING
    unfinished = targets_of(revision).exclude(state=TargetState.CONVERGED)
    rows = [target_row(target) for target in unfinished[: MAX_STATUS_TARGETS + 1]]
    more = unfinished.count() - MAX_STATUS_TARGETS if len(rows) > MAX_STATUS_TARGETS else 0
    return {
        "phase": DELETING if deleting else revision.phase,
        "since": deployment.deleting_since if deleting else revision.phase_since,
        "message": deployment.removal_message if deleting else revision.message,
        "observedGeneration": revision.generation if revision.evaluated_at else revision.generation - 1,
        "counts": {name: getattr(revision, name) for name in ("matched", "released", "converged", "failed", "offline")},
        "latecomers": revision.latecomers,
        "frozenAt": revision.frozen_at,
        "openedAt": revision.opened_at,
        "conditions": revision.conditions,
        "images": [image_row(each) for each in images_of(revision)],
        "targets": rows[:MAX_STATUS_TARGETS],
        "targetsOmitted": more,
    }


def images_of(revision: Revision) -> list[images.Standing]:
    """What the revision's tags stand for (DEP-18): no query."""
    return images.standings(spec_of(revision).score.data, revision.pins)


def image_row(each: images.Standing) -> dict[str, Any]:
    """One reference without a digest as API and CLI show it."""
    return {"reference": each.reference, "digest": each.digest, "provenBy": each.device, "note": each.note}


def phase_history(deployment: Deployment) -> QuerySet[PhaseChange]:
    """All phase changes of all revisions, newest first: one query."""
    return PhaseChange.objects.filter(revision__deployment=deployment).select_related("revision").order_by("-id")


def revisions_to_evaluate() -> list[int]:
    """Ids of live revisions that may have something to do, the oldest look first: two queries.

    Everything that is not converged; of the converged ones those that nobody looked at for a minute, and those with a
    device whose connectivity changed since.
    """
    now = clock.now()
    long_ago = Q(evaluated_at__lt=now - CONVERGED_LOOK) | Q(evaluated_at=None)
    busy = live_revisions().filter(~Q(phase=Phase.CONVERGED) | long_ago).values_list("pk", flat=True)
    changed = Target.objects.filter(
        revision__phase=Phase.CONVERGED,
        revision__deployment__life=Life.ACTIVE,
        device__heartbeat__connectivity_since__gte=now - CONVERGED_LOOK,
        device__heartbeat__connectivity_since__gt=F("revision__evaluated_at"),
    )
    return list(dict.fromkeys([*busy, *changed.order_by().values_list("revision_id", flat=True).distinct()]))


def deployments_to_remove() -> QuerySet[Deployment]:
    """Deployments whose removal is not proven yet (DEP-14)."""
    rows: QuerySet[Deployment] = Deployment.objects.filter(life=Life.DELETING)
    return rows.order_by("deleting_since", "pk")


def devices_to_remove_it(deployment: Deployment) -> list[str]:
    """Names of the devices that have not proven to be without this deployment (DEP-14): one query."""
    holding = DesiredItem.objects.filter(kind=DEPLOYMENT_KIND, key=str(deployment.uid)).order_by("device__name")
    return list(holding.values_list("device__name", flat=True))
