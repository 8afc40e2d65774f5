"""A task run's work: to release a device is to offer it an attempt of the run's executor (TSK-3)."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import OuterRef, Subquery

from fleet.targeting.models import TargetState
from tasks.models import TaskRun
from upgrades.models import Attempt, State
from upgrades.services import Offer, attempts_offer, attempts_withdraw


def ask(run: TaskRun, devices: Mapping[int, str]) -> set[int]:
    """Offer an attempt to these devices (names by id); those that were offered one. The run is locked."""
    made = attempts_offer(devices=devices, offer=Offer(run.executor, str(run), f"TaskRun {run}", run.deadline_at))
    theirs = Attempt.objects.filter(device_id=OuterRef("device_id"), state=State.OFFERED).order_by("-pk")
    held = run.targets.filter(device_id__in=list(made), state=TargetState.HELD)
    held.update(attempt_id=Subquery(theirs.values("pk")[:1]))
    return set(made)


def follow(run: TaskRun) -> None:
    """A target leads to the one attempt that it was released with."""


def take_back(run: TaskRun) -> None:
    """Withdraw what no device has begun; the run is locked."""
    told = run.targets.filter(state=TargetState.RELEASED, attempt__state=State.OFFERED, device__isnull=False)
    devices = list(told.order_by("device_id").values_list("device_id", flat=True))
    attempts_withdraw(attempts=Attempt.objects.filter(target__run=run), device_ids=devices)
