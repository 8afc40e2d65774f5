"""What the rollout view shows; read anew every two seconds while somebody looks."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import HttpRequest

from devices.admin import looks as device_looks
from devices.models import Connectivity
from fleet.core.adminkit import show
from fleet.core.adminkit.steps import Step, skipped, step
from fleet.core.adminkit.tables import Tabs, paged
from fleet.targeting.models import TargetState
from fleet.targeting.selectors import counts
from rollouts import selectors
from rollouts.admin import looks
from rollouts.models import DELETING, Deployment, Phase, PhaseChange, Revision

CANARIES_SHOWN = 50
REVISIONS_SHOWN = 10
STEPS = (Phase.PENDING, Phase.CANARY, Phase.RELEASING, Phase.CONVERGED)
UNREACHABLE = Q(device__heartbeat__connectivity__in=(Connectivity.OFFLINE, Connectivity.NEVER))
#: The tabs above the targets: what they are called and which rows they keep.
TABS: Tabs = {
    "": ("All", Q()),
    "held": ("Held", Q(state=TargetState.HELD)),
    "released": ("Released", Q(state=TargetState.RELEASED)),
    "converged": ("Converged", Q(state=TargetState.CONVERGED)),
    "failed": ("Failed", Q(state=TargetState.FAILED)),
    "offline": ("Offline", UNREACHABLE),
}
#: How a revision's last step ended, by its phase.
ENDS = {Phase.CONVERGED: "done", Phase.FAILED: "failed", Phase.CANCELLED: "ended", Phase.SUPERSEDED: "ended"}


def context(request: HttpRequest, deployment: Deployment) -> dict[str, Any]:
    """All parts of the view. The number of queries does not depend on the number of targets."""
    revision = selectors.current_revision(deployment)
    canaries, rest = counts(revision.targets.all())
    history = list(revision.history.all())
    return {
        "deployment": deployment,
        "revision": revision,
        "phase": looks.phase(deployment.phase),
        "sentence": sentence(deployment),
        "steps": steps(revision, history, bool(canaries.total)),
        "deleting": deployment.phase == DELETING,
        "bar": looks.progress_bar(deployment),
        "busy": max(0, deployment.released - deployment.converged - deployment.failed),
        "held": max(0, deployment.matched - deployment.released),
        "canary_count": canaries.total,
        "rest_count": rest.total,
        "canaries": _rows(selectors.targets_of(revision).filter(canary=True)[:CANARIES_SHOWN]),
        "images": selectors.images_of(revision),
        "latecomers": condition(revision, "Latecomers"),
        "revisions": list(deployment.revisions.all()[:REVISIONS_SHOWN]),
        **_targets(request, revision),
    }


def sentence(deployment: Any) -> str:
    """What it waits for; when it waits for nothing, what was reached."""
    if deployment.message:
        return str(deployment.message)
    if deployment.phase == Phase.CONVERGED:
        return f"Done: {show.plural(deployment.converged, 'device')} proved this revision"
    if deployment.phase == Phase.CANCELLED:
        return "Ended by an operator: nothing more is released, and what runs keeps running"
    return "Waiting for the first evaluation"


def condition(revision: Revision, name: str) -> dict[str, Any] | None:
    """A condition that is true, if it is."""
    found = (each for each in revision.conditions if each.get("type") == name)
    return next((each for each in found if each.get("status") in (True, "True")), None)


def steps(revision: Revision, history: list[PhaseChange], has_canaries: bool) -> list[Step]:
    """The timeline Pending, Canary, Releasing, Converged."""
    reached = {change.target: change for change in history}
    stopped = revision.phase in (Phase.FAILED, Phase.CANCELLED, Phase.SUPERSEDED)
    current = _last_step(history) if stopped else revision.phase
    position = STEPS.index(current)
    return [
        skipped(name, "no canary in the set")
        if name == Phase.CANARY and not has_canaries and revision.frozen_at is not None
        else _step(name, index - position, reached.get(name), revision)
        for index, name in enumerate(STEPS)
    ]


def _last_step(history: list[PhaseChange]) -> str:
    return next((change.source for change in reversed(history) if change.source in STEPS), Phase.PENDING)


def _step(name: str, offset: int, change: PhaseChange | None, revision: Revision) -> Step:
    at = revision.created_at if name == Phase.PENDING else change.at if change else None
    end = ENDS.get(Phase(revision.phase), "")
    return step(name, offset, at, end=end, note="" if end in ("", "done") else revision.phase.lower())


def _targets(request: HttpRequest, revision: Revision) -> dict[str, Any]:
    """The page of the other targets that the query string asks for."""
    found = paged(
        request, selectors.targets_of(revision).filter(canary=False), revision.targets.filter(canary=False), TABS
    )
    return {**found, "targets": _rows(found["page"].object_list)}


def _rows(targets: Any) -> list[dict[str, Any]]:
    return [
        {
            "target": target,
            "state": looks.target(target.state),
            "connectivity": _connectivity(target),
            "message": selectors.target_row(target)["message"],
            "images": looks.images(target.images),
        }
        for target in targets
    ]


def _connectivity(target: Any) -> Any:
    if target.device_id is None:
        return show.badge("forgotten", show.Look("bad", "delete_forever"))
    return device_looks.connectivity(target.connectivity or Connectivity.NEVER)
