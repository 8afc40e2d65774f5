"""What rollouts add to a device's pages: its deployments, and which gates forgetting it would hold shut."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from agent.wire.messages import DEPLOYMENT_KIND
from devices.admin import panels
from devices.models import DesiredItem, Device
from fleet.core.adminkit import show
from rollouts.admin import looks
from rollouts.models import LIVE_PHASES, Deployment, Life, Observation, Target


@panels.add_panel
def deployments(request: HttpRequest, device: Device) -> SafeString:
    """Desired against observed, one row per deployment."""
    if not request.user.has_perm("rollouts.view_deployment"):
        return mark_safe("")
    return mark_safe(  # noqa: S308  (a rendered template)
        render_to_string("fleet/device_deployments.html", {"rows": _rows(device)}, request=request)
    )


def _rows(device: Device) -> list[dict[str, Any]]:
    """Four queries, however many deployments."""
    items = {item.key: item for item in DesiredItem.objects.filter(device=device, kind=DEPLOYMENT_KIND)}
    observed = {str(each.deployment_uid): each for each in Observation.objects.filter(device=device)}
    current = Target.objects.filter(
        Q(revision__generation=F("revision__deployment__generation")), device=device
    ).select_related("revision__deployment")
    targets = {str(target.revision.deployment.uid): target for target in current}
    uids = {*items, *observed, *targets}
    known = {str(each.uid): each for each in Deployment.objects.filter(uid__in=uids)}
    rows = [_row(uid, known.get(uid), items.get(uid), targets.get(uid), observed.get(uid)) for uid in uids]
    return sorted(rows, key=lambda row: row["name"])


def _row(
    uid: str,
    deployment: Deployment | None,
    item: DesiredItem | None,
    target: Target | None,
    observation: Observation | None,
) -> dict[str, Any]:
    return {
        "name": str(deployment or f"unknown deployment {uid}"),
        "deployment": deployment,
        "wanted": _wanted(item, target),
        "target": target,
        "state": looks.target(target.state) if target else show.DASH,
        "observation": observation,
        "observed": looks.observed(observation.state) if observation else show.DASH,
        "images": looks.images(observation.images if observation else None),
        "message": (observation.message if observation else "") or (target.message if target else ""),
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
