"""A manifest becomes a deployment, a changed spec a new revision (DEP-9); the new one takes over at once (DEP-13)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from devices.services.deployers import check_groups
from fleet.core import audit, clock
from fleet.core.door import Admitted
from fleet.core.errors import Conflict, NotFound
from fleet.core.fsm import locked
from fleet.core.kinds import Done, Outcome
from fleet.targeting.models import TargetState
from fleet.targeting.services import targets_end
from rollouts.models import LIVE_PHASES, Deployment, Life, Phase, Revision
from rollouts.selectors import current_revision
from rollouts.selectors.matching import spec_of
from rollouts.services.bells import ring_for_revision
from rollouts.services.history import KIND
from rollouts.services.resolving import document_of, pins_to_begin_with
from rollouts.services.status import finish


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply did; ``deployment`` is None after a dry run that would have created it."""

    deployment: Deployment | None
    outcome: Outcome
    generation: int

    @property
    def done(self) -> Done:
        """As entrances for any kind see it."""
        return Done(self.outcome, self.generation, self.deployment.pk if self.deployment else None)


def deployment_apply(*, manifest: Admitted, actor: User | None, dry_run: bool = False) -> Applied:
    """Bring the deployment of that namespace and name to the manifest's spec (DEP-1, DEP-9, DEP-13).

    The same spec again changes nothing; changed labels and annotations make no revision. ``actor`` None is the system
    itself.

    Raises:
        Denied: the actor may not deploy to one of the groups (DEP-7).
        Conflict: the deployment is being deleted.
    """
    check_groups(manifest.spec.get("allowedGroups", ()), actor=actor)
    if dry_run:
        return _foretell(manifest)
    try:
        return _apply(manifest, actor)
    except Deployment.DoesNotExist:  # its removal ended just now, so this makes a new one
        return _apply(manifest, actor)


def _apply(manifest: Admitted, actor: User | None) -> Applied:
    metadata = manifest.manifest.metadata
    with transaction.atomic():
        deployment, created = Deployment.objects.get_or_create(
            namespace=metadata.namespace,
            name=metadata.name,
            defaults={
                "labels": dict(metadata.labels),
                "annotations": dict(metadata.annotations),
                "created_at": clock.now(),
            },
        )
        if created:
            revision_start(deployment, canonical=manifest.spec, spec_hash=manifest.spec_hash, actor=actor)
            outcome: Outcome = "created"
        else:
            with locked(Deployment, deployment.pk) as deployment:
                outcome = _update(deployment, manifest, actor)
        if outcome != "unchanged":
            _record(actor, "apply", deployment, {"outcome": outcome, "generation": deployment.generation})
    return Applied(deployment, outcome, deployment.generation)


@contextmanager
def active(deployment: Deployment) -> Iterator[Deployment]:
    """The deployment, fresh and locked.

    Raises:
        NotFound: it is gone.
        Conflict: it is being deleted.
    """
    try:
        with locked(Deployment, deployment.pk) as fresh:
            _refuse_deleting(fresh)
            yield fresh
    except Deployment.DoesNotExist:
        raise NotFound(f"Deployment {deployment} is gone") from None


def _foretell(manifest: Admitted) -> Applied:
    metadata = manifest.manifest.metadata
    deployment = Deployment.objects.filter(namespace=metadata.namespace, name=metadata.name).first()
    if deployment is None:
        return Applied(None, "created", 1)
    _refuse_deleting(deployment)
    changed = current_revision(deployment).spec_hash != manifest.spec_hash
    outcome: Outcome = "configured" if changed or _metadata_differs(deployment, manifest) else "unchanged"
    return Applied(deployment, outcome, deployment.generation + changed)


def _update(deployment: Deployment, manifest: Admitted, actor: User | None) -> Outcome:
    _refuse_deleting(deployment)
    outcome: Outcome = "unchanged"
    if _metadata_differs(deployment, manifest):
        deployment.labels = dict(manifest.manifest.metadata.labels)
        deployment.annotations = dict(manifest.manifest.metadata.annotations)
        outcome = "configured"
    if current_revision(deployment).spec_hash != manifest.spec_hash:
        deployment.generation += 1
        revision_start(deployment, canonical=manifest.spec, spec_hash=manifest.spec_hash, actor=actor)
        outcome = "configured"
    return outcome


def _metadata_differs(deployment: Deployment, manifest: Admitted) -> bool:
    metadata = manifest.manifest.metadata
    return (deployment.labels, deployment.annotations) != (metadata.labels, metadata.annotations)


def deployment_retarget(*, deployment: Deployment, actor: User | None) -> Revision:
    """A new revision of the same spec, which freezes a new target set (DEP-9, DEP-10).

    Devices that run it already restart nothing: only the number in their document changes.

    Raises:
        Denied: the actor may not deploy to one of the groups (DEP-7).
        NotFound, Conflict: the deployment is gone or going.
    """
    with active(deployment) as fresh:
        current = current_revision(fresh)
        check_groups(spec_of(current).allowedGroups, actor=actor)
        fresh.generation += 1
        revision = revision_start(fresh, canonical=current.spec, spec_hash=current.spec_hash, actor=actor)
        _record(actor, "retarget", fresh, {"generation": fresh.generation})
    return revision


def revision_start(
    deployment: Deployment, *, canonical: dict[str, Any], spec_hash: str, actor: User | None
) -> Revision:
    """The revision of ``deployment.generation``, pending, in place of the one that is running.

    Inside a transaction that holds the deployment's lock. The evaluation is rung for after commit (R13).
    """
    now = clock.now()
    _supersede(deployment, now)
    pins = pins_to_begin_with(deployment, canonical)
    revision: Revision = Revision.objects.create(
        deployment=deployment,
        generation=deployment.generation,
        spec=canonical,
        spec_hash=spec_hash,
        pins=pins,
        document=document_of(deployment, canonical, pins),
        created_at=now,
        created_by=actor.get_username() if actor else "",
        phase_since=now,
        message="Waiting for the first evaluation",
    )
    ring_for_revision(revision.pk)
    return revision


def _supersede(deployment: Deployment, now: datetime) -> None:
    """The running revision is over, whatever its state; what it did not release it never will (DEP-13, R15)."""
    running = Revision.objects.filter(deployment=deployment, phase__in=LIVE_PHASES).values_list("pk", flat=True)
    for pk in list(running):
        with locked(Revision, pk) as revision:
            targets_end(revision.targets.filter(state=TargetState.HELD), now=now)
            finish(
                revision, phase=Phase.SUPERSEDED, message=f"Superseded by generation {deployment.generation}", now=now
            )


def _refuse_deleting(deployment: Deployment) -> None:
    if deployment.life == Life.DELETING:
        raise Conflict(
            f"Deployment {deployment} is being deleted ({deployment.removal_message or 'just begun'}); "
            "apply it again when it is gone"
        )


def _record(actor: User | None, action: str, deployment: Deployment, detail: dict[str, Any]) -> None:
    audit.record(actor=actor, action=action, kind=KIND, name=str(deployment), detail=detail)
