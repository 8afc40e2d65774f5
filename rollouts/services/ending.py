"""Every state can be left by an operator: ending a rollout, deleting a deployment (DEP-14, DEP-17)."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, When

from agent.wire.messages import DEPLOYMENT_KIND
from devices.models import Connectivity, DesiredItem, Device
from devices.services import mailbox
from fleet.core import audit, clock
from fleet.core.errors import Conflict, NotFound
from fleet.core.fsm import locked
from fleet.targeting import wording
from fleet.targeting.models import TargetState
from fleet.targeting.services import targets_end
from rollouts.models import LIVE_PHASES, Deployment, Life, Observation, Phase, Revision
from rollouts.selectors import devices_to_remove_it
from rollouts.services.applying import active
from rollouts.services.bells import ring_for_deployment
from rollouts.services.history import KIND, tell
from rollouts.services.logs import logs_drop
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
            give_up = f"fleetctl forget-device {deployment}"
            message = wording.removing(_blockers(deployment, holding), total=waiting, give_up=give_up, now=clock.now())
            Deployment.objects.filter(pk=deployment_id).exclude(removal_message=message).update(removal_message=message)
        else:
            _forget(deployment)


def deployment_forget_device(*, deployment: Deployment, device: Device, actor: User | None) -> None:
    """Wait for this device no more: a deployment that is being deleted gives it up without proof (DEP-14).

    The object ends when it was the last one. Should the device come back, it removes the containers by itself, because
    nothing that is not desired stays there; until then they may run.

    Raises:
        NotFound: the deployment is gone.
        Conflict: it is not being deleted, or does not wait for this device; nothing was changed.
    """
    try:
        with locked(Deployment, deployment.pk) as fresh:
            _give_up(fresh, device)
            audit.record(
                actor=actor, action="forget-device", kind=KIND, name=str(fresh), detail={"device": device.name}
            )
            who = actor.get_username() if actor else "the system"
            tell(
                fresh,
                reason="DeviceGivenUp",
                message=f"{who} gave up {device.name}; its containers may still run there",
            )
    except Deployment.DoesNotExist:
        raise NotFound(f"Deployment {deployment} is gone") from None
    deployment_evaluate_removal(deployment_id=deployment.pk)


def _give_up(deployment: Deployment, device: Device) -> None:
    if deployment.life != Life.DELETING:
        raise Conflict(
            f"Deployment {deployment} is not being deleted, so no device can be given up; delete it first, "
            "or retarget it without the device"
        )
    key = str(deployment.uid)
    if not mailbox.desired_drop(kind=DEPLOYMENT_KIND, key=key, device_ids=[device.pk]):
        waits = wording.names(devices_to_remove_it(deployment)) or "no device"
        raise Conflict(f"Deployment {deployment} does not wait for {device.name}; it waits for {waits}")


def _blockers(deployment: Deployment, holding: QuerySet[DesiredItem]) -> list[wording.Blocker]:
    """The first few, those that are away before the others: about them something can be done.

    With what each has said since the deletion began; what it said before is about something else.
    """
    away = Q(device__heartbeat__connectivity__in=(Connectivity.OFFLINE, Connectivity.NEVER))
    said = Observation.objects.filter(
        deployment_uid=deployment.uid, device_id=OuterRef("device_id"), reported_at__gte=deployment.deleting_since
    )
    rows = holding.order_by(Case(When(away, then=0), default=1), "device__name").values_list(
        F("device__name"),
        F("device__heartbeat__connectivity"),
        F("device__heartbeat__connectivity_since"),
        Subquery(said.values("message")[:1]),
    )
    return [
        wording.Blocker(device=name, connectivity=connectivity or "never", since=since, message=message or "")
        for name, connectivity, since, message in rows[: wording.NAMED]
    ]


def _forget(deployment: Deployment) -> None:
    logs_drop(deployment)
    Observation.objects.filter(deployment_uid=deployment.uid).delete()
    tell(deployment, reason="Deleted", message="removed from every device")
    deployment.delete()
