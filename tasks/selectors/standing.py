"""What is known of a run's targets at one instant. Read-only."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from agent.wire.messages import APT_FULL_UPGRADE_V1
from devices.models import Connectivity, Device
from fleet.targeting.models import TargetState
from fleet.targeting.policy import Count
from fleet.targeting.selectors import counts
from fleet.targeting.services import Evidence
from fleet.targeting.wording import NAMED, Blocker
from tasks.models import Kind, TaskRun, TaskTarget
from tasks.selectors import agents
from tasks.selectors.lists import blocker, targets_of
from upgrades.models import BEGUN, OPEN, UNSUCCESSFUL, Attempt, State

NO_CAPABILITY = f"the device does not advertise the updater capability {APT_FULL_UPGRADE_V1}, so it is never sent this"


def counted(run: TaskRun) -> tuple[Count, Count]:
    """Canaries and the rest by state: one query."""
    return counts(run.targets.all())


def evidence(run: TaskRun) -> Evidence:
    """What devices said of their targets: of their attempts, or of the agents that they shall run."""
    if run.kind == Kind.AGENT_RELEASE:
        return agents.evidence(run)
    own = Attempt.objects.filter(pk=OuterRef("attempt_id"))
    return Evidence(
        converged=Exists(own.filter(state=State.COMPLETED)),
        failed=Exists(own.filter(state__in=UNSUCCESSFUL)),
        progressing=Exists(own.filter(state__in=BEGUN)),
        message=Subquery(own.values("message")[:1]),
    )


def taken() -> Exists:
    """Of a target: another attempt is open on its device (TSK-5)."""
    return Exists(Attempt.objects.filter(device_id=OuterRef("device_id"), state__in=OPEN))


def free(targets: QuerySet[TaskTarget]) -> QuerySet[TaskTarget]:
    """Those held targets whose devices may begin now."""
    return targets.filter(~taken(), state=TargetState.HELD, device__isnull=False)


def never_begun(run: TaskRun) -> Q:
    """Of released targets, after what was offered is withdrawn: those whose devices never begin."""
    return Q(~Exists(agents.wanted(run))) if run.kind == Kind.AGENT_RELEASE else Q(attempt__state=State.WITHDRAWN)


def unable(run: TaskRun, device_ids: Collection[int]) -> dict[str, list[int]]:
    """Devices that can't be asked for it, by the sentence that says why (TSK-2): one query. (SQLite can't look into
    JSON lists.)
    """
    if run.kind == Kind.AGENT_RELEASE:
        return agents.unable(run, device_ids)
    rows = Device.objects.filter(pk__in=device_ids).values_list("pk", "capabilities")
    lacking = [pk for pk, capabilities in rows if APT_FULL_UPGRADE_V1 not in capabilities]
    return {NO_CAPABILITY: lacking} if lacking else {}


def silent(run: TaskRun) -> str:
    """The first device that has begun and is not heard any more; empty when there is none: one query."""
    begun = run.targets.filter(state=TargetState.RELEASED, attempt__state__in=BEGUN)
    away = begun.filter(device__heartbeat__connectivity=Connectivity.OFFLINE)
    return str(away.values_list("device_name", flat=True).first() or "")


def blockers(run: TaskRun, which: Q) -> list[Blocker]:
    """The first few of these targets, canaries first."""
    return [blocker(target) for target in targets_of(run).filter(which)[:NAMED]]
