"""What rollouts add to a device's pages: its deployments, and which gates forgetting it would hold shut."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from agent.wire.messages import DEPLOYMENT_KIND
from devices.admin import panels
from devices.models import DesiredItem, Device
from fleet.core.adminkit import show
from rollouts.admin import looks
from rollouts.models import LIVE_PHASES, Deployment, Life, Target
from rollouts.selectors.on_device import OnDevice, deployments_on


@panels.add_panel
def deployments(request: HttpRequest, device: Device) -> SafeString:
    """Desired against observed, one row per deployment."""
    if not request.user.has_perm("rollouts.view_deployment"):
        return mark_safe("")
    return mark_safe(  # noqa: S308  (a rendered template)
        render_to_string(
            "fleet/device_deployments.html", {"rows": [_row(each) for each in deployments_on(device)]}, request=request
        )
    )


def _row(found: OnDevice) -> dict[str, Any]:
    target, observation = found.target, found.observation
    return {
        "name": found.name,
        "deployment": found.deployment,
        "wanted": _wanted(found.item, target),
        "target": target,
        "state": looks.target(target.state) if target else show.DASH,
        "observation": observation,
        "observed": looks.observed(observation.state) if observation else show.DASH,
        "images": looks.images(observation.images if observation else None),
        "message": found.message,
    }


def _wanted(item: DesiredItem | None, target: Target | None) -> str:
    if item is None:
        return "nothing yet" if target else "nothing: it is left over"
    if item.remove:
        return "to be removed"
    return f"yes (version {item.version})"


@panels.add_forget_warning
def gates(device: Device) -> list[str]:
    """One sentence for each rollout that would notice (DEP-12, DEP-14)."""
    concerned = Target.objects.filter(
        revision__phase__in=LIVE_PHASES, revision__deployment__life=Life.ACTIVE, device=device
    ).select_related("revision__deployment")
    sentences = [_consequence(target) for target in concerned.order_by("revision__deployment__name")]
    held = DesiredItem.objects.filter(device=device, kind=DEPLOYMENT_KIND).values_list("key", flat=True)
    waiting = Deployment.objects.filter(life=Life.DELETING, uid__in=list(held))
    sentences += [f"The deletion of {each} no longer waits for it; its containers stay there." for each in waiting]
    return sentences


def _consequence(target: Target) -> str:
    name = target.revision.deployment
    if target.canary and target.revision.opened_at is None:
        return (
            f"It is a canary of the rollout {name}: forgetting it counts as its failure and keeps the gate shut; "
            "the other devices get nothing until you retarget."
        )
    return f"The rollout {name} counts it as failed until you retarget."
