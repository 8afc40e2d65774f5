"""What is known of a revision's targets at one instant: evidence, counts, and who holds it up. Read-only."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, TextField, Value, When

from agent.wire.messages import DeploymentState
from devices.models import Connectivity, ReportInbox
from fleet.targeting.models import TargetState
from fleet.targeting.policy import Tally
from fleet.targeting.selectors import counts
from fleet.targeting.services import Evidence
from fleet.targeting.wording import NAMED, Blocker
from rollouts import images
from rollouts.models import INBOX_KIND, Observation, Phase, Revision, Target
from rollouts.selectors.lists import blocker, targets_of
from rollouts.selectors.matching import spec_of

UNREACHABLE = (Connectivity.OFFLINE, Connectivity.NEVER)
#: Converged devices that are asked what they run while a tag is open; usually the first one settles it.
PROOFS = 20
OTHER_DIGEST = "runs another digest of a tag than the one that was proven first, and takes that one next"


def evidence(revision: Revision) -> Evidence:
    """What devices last said about exactly this revision.

    A device that converged on another digest than the revision's is on its way only (DEP-18).
    """
    about = _about(revision)
    said = Case(
        When(state=DeploymentState.CONVERGED, then=Value(OTHER_DIGEST)), default=F("message"), output_field=TextField()
    )
    return Evidence(
        converged=Exists(_proof(revision)),
        failed=Exists(about.filter(state=DeploymentState.FAILED)),
        progressing=Exists(about.filter(state__in=(DeploymentState.PROGRESSING, DeploymentState.CONVERGED))),
        message=Subquery(about.values(said=said)[:1]),
    )


def proofs(revision: Revision) -> list[images.Proof]:
    """What converged devices run, the one that said so first before the others: one query."""
    converged = revision.targets.order_by().filter(state=TargetState.CONVERGED).values("device")
    said = _of(revision).filter(state=DeploymentState.CONVERGED, device__in=converged).exclude(images={})
    rows = said.order_by("reported_at", "device__name").values_list("device__name", "images")
    return [images.Proof(*row) for row in rows[:PROOFS]]


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
    fresh = _proof(revision).filter(
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
    return _of(revision).filter(device_id=OuterRef("device_id"))


def _of(revision: Revision) -> QuerySet[Observation]:
    return Observation.objects.filter(
        deployment_uid=revision.deployment.uid,
        revision=revision.generation,
    )


def _proof(revision: Revision) -> QuerySet[Observation]:
    """Said to be converged, and running what the revision's tags are pinned to.

    A container without a digest in the report contradicts nothing: the agent leaves digests out of a report that would
    be too long.
    """
    rows = _about(revision).filter(state=DeploymentState.CONVERGED)
    wanted = images.expected(spec_of(revision).score.data, revision.pins) if revision.pins else {}
    for number, (container, digest) in enumerate(wanted.items()):
        runs = f"runs_{number}"
        rows = rows.alias(**{runs: _Digest(container)})
        rows = rows.filter(Q(**{runs: digest}) | Q(**{f"{runs}__isnull": True}))
    return rows


class _Digest(Func):
    """What is reported of a container, by its name, which may be a number: Django's own lookup would count with it."""

    function = "jsonb_extract_path_text"
    output_field = TextField()

    def __init__(self, container: str) -> None:
        super().__init__(F("images"), Value(container))

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        images, container = self.get_source_expressions()
        path = Value(f"$.{json.dumps(container.value)}")
        return Func(images, path, function="json_extract").as_sql(compiler, connection, **context)
