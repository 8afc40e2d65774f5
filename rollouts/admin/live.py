"""What the rollout view shows; read anew every two seconds while somebody looks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from devices.admin import looks as device_looks
from devices.models import Connectivity
from fleet.core.adminkit import show
from fleet.targeting.models import TargetState
from fleet.targeting.selectors import counts
from rollouts import selectors
from rollouts.admin import looks
from rollouts.models import DELETING, Deployment, Phase, PhaseChange, Revision, Target

PER_PAGE = 50
CANARIES_SHOWN = 50
REVISIONS_SHOWN = 10
STEPS = (Phase.PENDING, Phase.CANARY, Phase.RELEASING, Phase.CONVERGED)
UNREACHABLE = Q(device__heartbeat__connectivity__in=(Connectivity.OFFLINE, Connectivity.NEVER))
#: The tabs above the targets: what they are called and which rows they keep.
TABS: dict[str, tuple[str, Q]] = {
    "": ("All", Q()),
    "held": ("Held", Q(state=TargetState.HELD)),
    "released": ("Released", Q(state=TargetState.RELEASED)),
    "converged": ("Converged", Q(state=TargetState.CONVERGED)),
    "failed": ("Failed", Q(state=TargetState.FAILED)),
    "offline": ("Offline", UNREACHABLE),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One dot of the phase timeline; ``look`` is done, now, failed, skipped or ahead."""

    name: str
    look: str
    icon: str
    at: datetime | None
    note: str = ""


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
    skipped = not has_canaries and revision.frozen_at is not None
    return [
        _step(name, index - position, reached.get(name), revision, skipped=skipped) for index, name in enumerate(STEPS)
    ]


def _last_step(history: list[PhaseChange]) -> str:
    return next((change.source for change in reversed(history) if change.source in STEPS), Phase.PENDING)


def _step(name: str, offset: int, change: PhaseChange | None, revision: Revision, *, skipped: bool) -> Step:
    at = revision.created_at if name == Phase.PENDING else change.at if change else None
    if name == Phase.CANARY and skipped:
        return Step(name, "skipped", "remove", None, "no canary in the set")
    if offset > 0:
        return Step(name, "ahead", "more_horiz", None)
    if offset < 0 or (name == Phase.CONVERGED and revision.phase == Phase.CONVERGED):
        return Step(name, "done", "check", at)
    if revision.phase == Phase.FAILED:
        return Step(name, "now failed", "close", at, "failed")
    if revision.phase in (Phase.CANCELLED, Phase.SUPERSEDED):
        return Step(name, "now ended", "block", at, revision.phase.lower())
    return Step(name, "now", "sync", at)


def _targets(request: HttpRequest, revision: Revision) -> dict[str, Any]:
    """The page of the other targets that the query string asks for."""
    tab, search = request.GET.get("state", ""), request.GET.get("find", "").strip()
    label, wanted = TABS.get(tab, TABS[""])
    if search:
        wanted &= Q(device_name__icontains=search)
    rows = _Counted(selectors.targets_of(revision), revision.targets.all(), wanted & Q(canary=False))
    pages: Paginator[Any] = Paginator(cast("Any", rows), PER_PAGE)
    page = pages.get_page(request.GET.get("page"))
    return {
        "tabs": [{"name": name, "label": text, "current": text == label} for name, (text, _) in TABS.items()],
        "tab": tab if tab in TABS else "",
        "find": search,
        "page": page,
        "targets": _rows(page.object_list),
    }


class _Counted:
    """Rows with everything that is shown, counted without the joins that only showing needs."""

    ordered = True

    def __init__(self, rows: QuerySet[Target], plain: QuerySet[Target], wanted: Q) -> None:
        self._rows, self._plain, self._wanted = rows, plain, wanted

    def count(self) -> int:
        return self._plain.order_by().filter(self._wanted).count()

    def __getitem__(self, cut: slice) -> QuerySet[Target]:
        return self._rows.filter(self._wanted)[cut]


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
