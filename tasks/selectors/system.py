"""What is known of a task run's targets: what devices said of the attempts that they were offered (TSK-2, TSK-3)."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q, Subquery

from agent.wire.messages import APT_FULL_UPGRADE_V1
from devices.models import Device
from fleet.targeting.services import Evidence
from tasks import policy
from tasks.models import TaskRun
from upgrades.models import BEGUN, UNSUCCESSFUL, Attempt, State


def evidence(run: TaskRun) -> Evidence:
    """What devices said of their targets' attempts."""
    own = Attempt.objects.filter(pk=OuterRef("attempt_id"))
    return Evidence(
        converged=Exists(own.filter(state=State.COMPLETED)),
        failed=Exists(own.filter(state__in=UNSUCCESSFUL)),
        progressing=Exists(own.filter(state__in=BEGUN)),
        message=Subquery(own.values("message")[:1]),
    )


def never_begun(run: TaskRun) -> Q:
    """Of released targets, after what was offered is withdrawn: those whose devices never begin."""
    return Q(attempt__state=State.WITHDRAWN)


def unable(run: TaskRun, device_ids: Collection[int]) -> dict[str, list[int]]:
    """Devices without an updater that can do it, by the sentence that says why (TSK-2): one query. (SQLite can't look
    into JSON lists.)
    """
    rows = Device.objects.filter(pk__in=device_ids).values_list("pk", "capabilities")
    lacking = [pk for pk, capabilities in rows if APT_FULL_UPGRADE_V1 not in capabilities]
    return {policy.NO_CAPABILITY: lacking} if lacking else {}
