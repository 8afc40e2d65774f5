"""Pages and the status object."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, When

from fleet.core import clock
from fleet.targeting import wording
from fleet.targeting.models import TargetState
from tasks.models import LIVE_PHASES, TaskRun, TaskTarget
from upgrades.models import BEGUN, UNSUCCESSFUL, State
from upgrades.selectors import journal_tails

#: How many unfinished and failed targets a status lists before it counts the others (TSK-6).
MAX_STATUS_TARGETS = 50


def targets_of(run: TaskRun) -> QuerySet[TaskTarget]:
    """The frozen set, canaries first, with attempts and when the devices were heard: one query."""
    rows: QuerySet[TaskTarget] = run.targets.select_related("attempt", "run").annotate(
        connectivity=F("device__heartbeat__connectivity"), connectivity_since=F("device__heartbeat__connectivity_since")
    )
    return rows.order_by("-canary", "device_name")


def blocker(target: TaskTarget) -> wording.Blocker:
    """A row of :func:`targets_of` in the terms of a sentence."""
    row: Any = target  # its annotations
    return wording.Blocker(
        device=target.device_name,
        canary=target.canary,
        forgotten=target.device_id is None,
        failed=target.state == TargetState.FAILED,
        connectivity=row.connectivity or "",
        since=row.connectivity_since,
        message=target.message or _doing(target),
    )


def _doing(target: TaskTarget) -> str:
    if target.state == TargetState.HELD:
        return "waits to be released"
    if target.attempt is None or target.attempt.state not in BEGUN:
        return "has not begun yet"
    return f"at {target.attempt.step}" if target.attempt.step else "has begun"


def shown_state(target: TaskTarget) -> str:
    """A target's state in words (TSK-4): ``Completed (late)`` after the run's deadline, ``NotStarted`` for good."""
    ended = target.attempt.ended_at if target.attempt else None
    has_begun = target.attempt is not None and target.attempt.state in BEGUN
    return _shown(target.state, is_late=bool(ended and ended > target.run.deadline_at), has_begun=has_begun)


def _shown(state: str, *, is_late: bool, has_begun: bool) -> str:
    if state == TargetState.CONVERGED:
        return "Completed (late)" if is_late else "Completed"
    if state == TargetState.RELEASED:
        return "Running" if has_begun else "Released"
    return {TargetState.HELD: "Held", TargetState.FAILED: "Failed"}.get(TargetState(state), "NotStarted")


def counts_by_state(run: TaskRun) -> dict[bool, dict[str, int]]:
    """How many targets are in which :func:`shown_state`, canaries (True) apart from the rest: one query."""
    late = Case(When(attempt__ended_at__gt=run.deadline_at, then=True), default=False)
    rows = (
        run.targets.order_by()
        .values_list("canary", "state", late, Case(When(attempt__state__in=BEGUN, then=True), default=False))
        .annotate(number=Count("pk"))
    )
    found: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for canary, state, is_late, has_begun, number in rows:
        word = _shown(state, is_late=is_late, has_begun=has_begun)
        found[canary][word] = found[canary].get(word, 0) + number
    return found


def runs_of_attempts(attempt_ids: Collection[int]) -> dict[int, tuple[str, int]]:
    """Kind and id of the run behind each of these attempts: one query."""
    rows = TaskTarget.objects.filter(attempt__in=attempt_ids)
    return {attempt: (kind, run) for attempt, kind, run in rows.values_list("attempt_id", "run__kind", "run_id")}


def target_row(target: TaskTarget, journal: list[Any]) -> dict[str, Any]:
    """One target as API and CLI show it, from a row of :func:`targets_of`."""
    row: Any = target
    over = target.state in (TargetState.CONVERGED, TargetState.ENDED)
    return {
        "device": target.device_name,
        "canary": target.canary,
        "state": shown_state(target),
        "message": target.message if over else wording.why(blocker(target), clock.now()),
        "step": target.attempt.step if target.attempt else "",
        "since": target.since,
        "releasedAt": target.released_at,
        "reason": target.reason,
        "connectivity": row.connectivity or "forgotten",
        "attempt": str(target.attempt.uid) if target.attempt else "",
        "journal": [
            {"number": each.number, "step": each.step, "event": each.event, "at": each.at, "message": each.message}
            for each in journal
        ],
    }


def target_rows(targets: list[TaskTarget]) -> list[dict[str, Any]]:
    """Targets with the tails of their journals: one query more."""
    tails = journal_tails([target.attempt_id for target in targets if target.attempt_id])
    return [target_row(target, tails.get(target.attempt_id or 0, [])) for target in targets]


def counts_of(run: TaskRun) -> dict[str, int]:
    """The counts as they are shown: no query."""
    shown = {name: getattr(run, name) for name in ("matched", "released", "completed", "failed")}
    return {**shown, "notStarted": run.not_started}


def run_status(run: TaskRun) -> dict[str, Any]:
    """The status object that every entrance shows (TSK-6): at most four queries."""
    unfinished = targets_of(run).exclude(state=TargetState.CONVERGED)
    listed = list(unfinished[:MAX_STATUS_TARGETS])
    more = unfinished.count() - MAX_STATUS_TARGETS if len(listed) == MAX_STATUS_TARGETS else 0
    return {
        "phase": run.phase,
        "since": run.phase_since,
        "message": run.message,
        "deadline": run.deadline_at,
        "counts": counts_of(run),
        "frozenAt": run.frozen_at,
        "openedAt": run.opened_at,
        "conditions": run.conditions,
        "history": list(run.history.values("at", "event", "message")),
        "targets": target_rows(listed),
        "targetsOmitted": more,
    }


def runs_to_evaluate() -> list[int]:
    """Live runs, and those that are over with a device whose last word is not in the target yet: one query."""
    unheard = (
        Q(targets__state=TargetState.RELEASED, targets__attempt__state__in=[State.COMPLETED, *UNSUCCESSFUL])
        | Q(targets__state=TargetState.FAILED, targets__attempt__state=State.COMPLETED, targets__device__isnull=False)
        | Q(targets__state=TargetState.RELEASED, targets__device=None)
    )
    found = TaskRun.objects.filter(Q(phase__in=LIVE_PHASES) | unheard)
    return list(found.order_by("pk").values_list("pk", flat=True).distinct())
