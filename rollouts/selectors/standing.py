"""What is known of a revision's targets at one instant: evidence, counts, and who holds it up. Read-only."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from agent.wire.messages import DeploymentState
from devices.models import Connectivity, ReportInbox
from fleet.targeting.models import TargetState
from fleet.targeting.policy import Tally
from fleet.targeting.selectors import counts
from fleet.targeting.services import Evidence
from fleet.targeting.wording import NAMED, Blocker
from rollouts.models import INBOX_KIND, Observation, Phase, Revision, Target
from rollouts.selectors.lists import blocker, targets_of

UNREACHABLE = (Connectivity.OFFLINE, Connectivity.NEVER)


def evidence(revision: Revision) -> Evidence:
    """What devices last said about exactly this revision."""
    return Evidence(
        converged=_said(revision, DeploymentState.CONVERGED),
        failed=_said(revision, DeploymentState.FAILED),
        progressing=_said(revision, DeploymentState.PROGRESSING),
        message=Subquery(_about(revision).values("message")[:1]),
    )


def tally(revision: Revision, now: datetime) -> Tally:
    """The counts that the gate and the phase are judged by: three queries, however many targets."""
    canaries, rest = counts(revision.targets.all())
    opened = revision.opened_at is not None
    reach = revision.targets.order_by().aggregate(
        told=Count("released_at"), offline=Count("pk", filter=Q(device__heartbeat__connectivity__in=UNREACHABLE))
    )
    proven = 0 if opened or not canaries.converged else proven_canaries(revision, now).count()
    return Tally(canaries=canaries, rest=rest, proven=proven, opened=opened, **reach)


def proven_canaries(revision: Revision, now: datetime) -> QuerySet[Target]:
    """Canaries that are converged at this instant (DEP-11).

    The report that says so is fresh, and none of the same device is waiting in the inbox: a failure may be in it.
    """
    fresh = _about(revision).filter(
        state=DeploymentState.CONVERGED,
        device__deployments_report__reported_at__gte=now - timedelta(seconds=settings.FLEET_STALE_SECONDS),
    )
    unread = ReportInbox.objects.filter(kind=INBOX_KIND, device_id=OuterRef("device_id"))
    return revision.targets.filter(Exists(fresh), ~Exists(unread), canary=True, state=TargetState.CONVERGED)


def blockers(revision: Revision, phase: str, counted: Tally, now: datetime) -> list[Blocker]:
    """The first few devices that keep a revision in this phase, canaries first."""
    if phase == Phase.CANARY:
        proven = proven_canaries(revision, now).values("pk")
        return _described(revision, Q(canary=True) & ~Q(pk__in=proven))
    if phase == Phase.RELEASING:
        return _described(revision, ~Q(state=TargetState.CONVERGED))
    if phase == Phase.FAILED:
        canary = Q(canary=True) if counted.canaries.failed else Q()
        return _described(revision, canary & Q(state=TargetState.FAILED))
    return []


def _described(revision: Revision, which: Q) -> list[Blocker]:
    return [blocker(target) for target in targets_of(revision).filter(which)[:NAMED]]


def _about(revision: Revision) -> QuerySet[Observation]:
    return Observation.objects.filter(
        device_id=OuterRef("device_id"),
        deployment_uid=revision.deployment.uid,
        revision=revision.generation,
    )


def _said(revision: Revision, state: DeploymentState) -> Exists:
    return Exists(_about(revision).filter(state=state))
