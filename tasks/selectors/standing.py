"""What is known of a run's targets at one instant. Read-only."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from devices.models import Connectivity
from fleet.targeting.models import TargetState
from fleet.targeting.policy import Count
from fleet.targeting.selectors import counts
from fleet.targeting.wording import NAMED, Blocker
from tasks.models import TaskRun, TaskTarget
from tasks.selectors.lists import blocker, targets_of
from upgrades.models import BEGUN, OPEN, Attempt


def counted(run: TaskRun) -> tuple[Count, Count]:
    """Canaries and the rest by state: one query."""
    return counts(run.targets.all())


def taken() -> Exists:
    """Of a target: another attempt is open on its device (TSK-5)."""
    return Exists(Attempt.objects.filter(device_id=OuterRef("device_id"), state__in=OPEN))


def free(targets: QuerySet[TaskTarget]) -> QuerySet[TaskTarget]:
    """Those held targets whose devices may begin now."""
    return targets.filter(~taken(), state=TargetState.HELD, device__isnull=False)


def silent(run: TaskRun) -> str:
    """The first device that has begun and is not heard any more; empty when there is none: one query."""
    begun = run.targets.filter(state=TargetState.RELEASED, attempt__state__in=BEGUN)
    away = begun.filter(device__heartbeat__connectivity=Connectivity.OFFLINE)
    return str(away.values_list("device_name", flat=True).first() or "")


def blockers(run: TaskRun, which: Q) -> list[Blocker]:
    """The first few of these targets, canaries first."""
    return [blocker(target) for target in targets_of(run).filter(which)[:NAMED]]
