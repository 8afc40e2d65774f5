"""What is known of an agent release's targets: which agent they shall run, and where that stands (UPG-10)."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from agent.wire import canonical
from agent.wire.manifest import AgentReleaseSpec
from devices.models import Device
from fleet.targeting.services import Evidence
from releases.models import ShelvedRelease
from tasks import policy
from tasks.models import LIVE_PHASES, Kind, TaskRun
from tasks.selectors.specs import spec_of
from upgrades.models import Attempt, DesiredAgent, Standing, State

SUPERSEDED = "another agent is wanted of the device by now, so this rollout has no say any more"


def rollouts_of(release: ShelvedRelease) -> list[str]:
    """Live ones that have devices to send this archive to."""
    live = TaskRun.objects.filter(kind=Kind.AGENT_RELEASE, phase__in=LIVE_PHASES).order_by("pk")
    concerned = (run for run in live if release.sha256 in {each.sha256 for each in release_spec(run).artifacts})
    return [f"{run.kind} {run}" for run in concerned]


def release_spec(run: TaskRun) -> AgentReleaseSpec:
    """The spec of a run that is an agent release."""
    return cast("AgentReleaseSpec", spec_of(run))


def digests(run: TaskRun) -> list[str]:
    """Of all that the release may want of a device, as :class:`DesiredAgent` keeps them."""
    spec = release_spec(run)
    targets = [policy.artifact(spec, each.architecture) for each in spec.artifacts]
    return [canonical.digest(target) for target in targets if target]


def wanted(run: TaskRun) -> QuerySet[DesiredAgent]:
    """The wanted agent of a target's device, if it is this release's."""
    found: QuerySet[DesiredAgent] = DesiredAgent.objects.filter(
        device_id=OuterRef("device_id"), spec_hash__in=digests(run)
    )
    return found


def evidence(run: TaskRun) -> Evidence:
    """What became of the agents that this release wants of its devices; where it wants none any more, what the device
    says of the attempt: it may have begun before that was taken back.
    """
    own = wanted(run)
    done = Attempt.objects.filter(pk=OuterRef("attempt_id"), state=State.COMPLETED)
    return Evidence(
        converged=Q(Exists(own.filter(state=Standing.CURRENT))) | Q(~Exists(own), Exists(done)),
        failed=Q(Exists(own.filter(state__in=(Standing.FAILED, Standing.UNABLE)))) | Q(~Exists(own), ~Exists(done)),
        progressing=Exists(own.filter(state__in=(Standing.WAITING, Standing.UNDER_WAY))),
        message=Coalesce(Subquery(own.values("message")[:1]), Value(SUPERSEDED)),
    )


def never_begun(run: TaskRun) -> Q:
    """Of released targets, after what was not begun is taken back: those whose devices never begin."""
    return Q(~Exists(wanted(run)))


def unable(run: TaskRun, device_ids: Collection[int]) -> dict[str, list[int]]:
    """Devices that can't be sent it, by the sentence that says why: one query."""
    spec = release_spec(run)
    rows = Device.objects.filter(pk__in=device_ids).values_list("pk", "architecture", "capabilities")
    found: dict[str, list[int]] = {}
    for pk, architecture, capabilities in rows:
        if problem := policy.cannot_be_sent(spec, architecture, capabilities):
            found.setdefault(problem, []).append(pk)
    return found
