"""What forgetting a device would do to the runs that have it among their targets."""

from __future__ import annotations

from devices.admin import panels
from devices.models import Device
from fleet.targeting.models import TargetState
from tasks.models import LIVE_PHASES, Kind, TaskTarget
from upgrades.models import BEGUN


@panels.add_forget_warning
def runs(device: Device) -> list[str]:
    """One sentence for each run under way that would notice (TSK-3)."""
    concerned = TaskTarget.objects.filter(
        run__phase__in=LIVE_PHASES, device=device, state__in=(TargetState.HELD, TargetState.RELEASED)
    ).select_related("run", "attempt")
    return [_consequence(target) for target in concerned.order_by("run__name")]


def _consequence(target: TaskTarget) -> str:
    run = f"{Kind(target.run.kind).label} {target.run}"
    words = f"The {run} counts it as failed."
    if target.canary:
        words = f"It is a canary of the {run}: forgetting it counts as its failure and ends the run."
    if target.attempt and target.attempt.state in BEGUN:
        words += " It is at work on the upgrade; that goes on, and nobody will hear how it ends."
    return words
