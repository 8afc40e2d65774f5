"""A run waits no more for a device that took its attempt on and was not heard again."""

from __future__ import annotations

from django.contrib.auth.models import User

from fleet.core.errors import NotFound
from tasks.models import TaskRun
from tasks.services.evaluation import taskrun_evaluate
from upgrades.services import attempt_give_up


def taskrun_give_up(*, run: TaskRun, device: str, actor: User | None) -> None:
    """Wait no more for a device that has begun and is not heard any more; its target fails (TSK-5).

    Raises:
        NotFound: the run has no such device, or never asked it.
        Conflict: the device has not begun, or has said how it went.
    """
    target = run.targets.filter(device_name=device, attempt__isnull=False).select_related("attempt").first()
    if target is None or target.attempt is None:
        raise NotFound(f"{run.kind} {run} has asked no device {device[:80]!r}")
    attempt_give_up(attempt=target.attempt, actor=actor)
    taskrun_evaluate(run_id=run.pk)
