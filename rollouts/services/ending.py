"""Every state can be left by an operator: ending a rollout, deleting a deployment (DEP-14, DEP-17)."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet

from agent.wire.messages import DEPLOYMENT_KIND
from devices.models import DesiredItem
from devices.services import mailbox
from fleet.core import audit, clock
from fleet.core.fsm import locked
from fleet.targeting import wording
from fleet.targeting.models import TargetState
from fleet.targeting.services import targets_end
from rollouts.models import LIVE_PHASES, Deployment, Life, Observation, Phase, Revision
from rollouts.services.applying import active
from rollouts.services.bells import ring_for_deployment
from rollouts.services.history import KIND, tell
from rollouts.services.status import finish


def rollout_end(*, deployment: Deployment, actor: User | None) -> None:
    """Nothing more is released of the current revision, for good; what runs stays (DEP-17).

    Ending what has ended already changes nothing (R7).

    Raises:
        NotFound, Conflict: the deployment is gone or going, which ends the rollout anyway.
    """
    with active(deployment) as fresh:
        who = actor.get_username() if actor else "the system"
        words = f"Ended by {who}; devices keep what they have. Retarget or apply a new revision to go on"
        if _cancel_running(fresh, words, clock.now()):
            audit.record(actor=actor, action="end", kind=KIND, name=str(fresh), detail={"generation": fresh.generation})


def deployment_delete(*, deployment: Deployment, actor: User | None) -> None:
    """Take the deployment off every device that may have it; the object ends when all have proven it (DEP-14).

    Works in every state (R3). With no device to wait for the object is gone when this returns. Asking twice changes
    nothing.
    """
    with suppress(Deployment.DoesNotExist), locked(Deployment, deployment.pk) as fresh:
        if fresh.life == Life.ACTIVE:
            _begin_removal(fresh, clock.now())
            audit.record(actor=actor, action="delete", kind=KIND, name=str(fresh))
            ring_for_deployment(fresh.pk)
    deployment_evaluate_removal(deployment_id=deployment.pk)


def _begin_removal(deployment: Deployment, now: datetime) -> None:
    deployment.mark_deleting(now)
    # First all revisions, then heads, then targets: the order in which the evaluation takes its locks.
    list(Revision.objects.select_for_update().filter(deployment=deployment, phase__in=LIVE_PHASES).order_by("pk"))
    mailbox.desired_withdraw(kind=DEPLOYMENT_KIND, key=str(deployment.uid))
    _cancel_running(deployment, "Cancelled by deletion", now)


def _cancel_running(deployment: Deployment, message: str, now: datetime) -> bool:
    running = Revision.objects.filter(deployment=deployment, phase__in=LIVE_PHASES).values_list("pk", flat=True)
    cancelled = False
    for pk in list(running):
        with locked(Revision, pk) as revision:
            targets_end(revision.targets.filter(state=TargetState.HELD), now=now)
            finish(revision, phase=Phase.CANCELLED, message=message, now=now)
            cancelled = True
    return cancelled


def deployment_evaluate_removal(*, deployment_id: int) -> None:
    """End a deleting deployment when no device holds it any more, else say whom it waits for (DEP-14, DEP-16)."""
    with transaction.atomic():
        deployment = Deployment.objects.select_for_update().filter(pk=deployment_id, life=Life.DELETING).first()
        if deployment is None:
            return
        holding = mailbox.holders(DEPLOYMENT_KIND, str(deployment.uid))
        waiting = holding.count()
        if waiting:
            message = wording.removing(_blockers(holding), total=waiting, now=clock.now())
            Deployment.objects.filter(pk=deployment_id).exclude(removal_message=message).update(removal_message=message)
        else:
            _forget(deployment)


def _blockers(holding: QuerySet[DesiredItem]) -> list[wording.Blocker]:
    rows = holding.order_by("device__name").values_list(
        F("device__name"), F("device__heartbeat__connectivity"), F("device__heartbeat__connectivity_since")
    )
    return [
        wording.Blocker(device=name, connectivity=connectivity or "never", since=since)
        for name, connectivity, since in rows[: wording.NAMED]
    ]


def _forget(deployment: Deployment) -> None:
    Observation.objects.filter(deployment_uid=deployment.uid).delete()
    tell(deployment, reason="Deleted", message="removed from every device")
    deployment.delete()
