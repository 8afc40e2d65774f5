"""What a run's page shows; read anew every two seconds while somebody looks."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import HttpRequest

from devices.admin import looks as device_looks
from devices.models import Connectivity
from fleet.core import clock
from fleet.core.adminkit import show
from fleet.core.adminkit.steps import Step, skipped, step
from fleet.core.adminkit.tables import Tabs, paged
from fleet.targeting.models import TargetState
from tasks import selectors
from tasks.admin import looks
from tasks.models import LIVE_PHASES, Chapter, Phase, TaskRun, TaskTarget
from upgrades.admin import looks as attempt_looks
from upgrades.models import BEGUN, State

CANARIES_SHOWN = 50
HISTORY_SHOWN = 50
#: What root runs on a device; updaters say it themselves.
REPAIR = "fleet-updater repair"
STEPS = (Phase.PENDING, Phase.CANARY, Phase.RUNNING, Phase.COMPLETED)
ENDS = {Phase.COMPLETED: "done", Phase.FAILED: "failed", Phase.CANCELLED: "ended"}
_RUNNING = Q(state=TargetState.RELEASED, attempt__state__in=BEGUN)
#: The tabs above the targets.
TABS: Tabs = {
    "": ("All", Q()),
    "held": ("Held", Q(state=TargetState.HELD)),
    "released": ("Released", Q(state=TargetState.RELEASED) & ~Q(attempt__state__in=BEGUN)),
    "running": ("Running", _RUNNING),
    "completed": ("Completed", Q(state=TargetState.CONVERGED)),
    "failed": ("Failed", Q(state=TargetState.FAILED)),
    "repair": ("Repair required", Q(attempt__state=State.REPAIR_REQUIRED)),
    "not-started": ("Not started", Q(state=TargetState.ENDED)),
}


def context(request: HttpRequest, run: TaskRun) -> dict[str, Any]:
    """All parts of the view. The number of queries does not depend on the number of targets."""
    counted = selectors.counts_by_state(run)
    canaries, rest = looks.segments(counted[True]), looks.segments(counted[False])
    history = list(run.history.order_by("-pk")[:HISTORY_SHOWN])
    targets = selectors.targets_of(run)
    found = paged(request, targets.filter(canary=False), run.targets.filter(canary=False), TABS)
    return {
        "run": run,
        "phase": looks.phase(run.phase),
        "steps": steps(run, history, has_canaries=canaries["total"] > 0),
        "left": run.deadline_at - clock.now(),
        "deadline_passed": clock.now() >= run.deadline_at,
        "live": run.phase in LIVE_PHASES,
        "canaries": canaries,
        "rest": rest,
        "canary_rows": _rows(targets.filter(canary=True)[:CANARIES_SHOWN]),
        "history": history,
        **found,
        "targets": _rows(found["page"].object_list),
    }


def steps(run: TaskRun, history: list[Chapter], *, has_canaries: bool) -> list[Step]:
    """The timeline Pending, Canary, Running, Completed."""
    reached: dict[str, Any] = {Phase.PENDING: run.created_at} | {each.event: each.at for each in history}
    if run.phase in STEPS:
        position = STEPS.index(Phase(run.phase))
    else:
        position = max(index for index, name in enumerate(STEPS) if name in reached)
    end = ENDS.get(Phase(run.phase), "")
    note = "" if end in ("", "done") else run.phase.lower()
    return [
        skipped(name, "no canary in the set")
        if name == Phase.CANARY and run.frozen_at is not None and not has_canaries
        else step(name, index - position, reached.get(name), end=end, note=note)
        for index, name in enumerate(STEPS)
    ]


def _rows(targets: Any) -> list[dict[str, Any]]:
    return [_row(target) for target in targets]


def _row(target: TaskTarget) -> dict[str, Any]:
    shown = selectors.target_row(target, [])
    needs_root = target.attempt is not None and target.attempt.state == State.REPAIR_REQUIRED
    return {
        "target": target,
        "state": looks.target(shown["state"]),
        "message": shown["message"],
        "step": attempt_looks.stepper(target.attempt),
        "repair": needs_root and REPAIR not in shown["message"],
        "connectivity": _connectivity(target),
    }


def _connectivity(target: Any) -> Any:
    """Only what is unusual: a device that is heard needs no word for it."""
    if target.device_id is None:
        return show.badge("forgotten", show.Look("bad", "delete_forever"))
    if target.connectivity == Connectivity.ONLINE:
        return ""
    return device_looks.connectivity(target.connectivity or Connectivity.NEVER)
