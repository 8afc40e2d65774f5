"""The one step that brings a run forward, whatever was missed before (level-triggered).

Locks are taken in the order run, heads of devices (ascending), attempts, targets; matching happens before any lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from django.db import IntegrityError
from django.db.models import Case, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Concat

from devices.selectors import Match, match
from fleet.core import clock
from fleet.core.fsm import locked
from fleet.targeting import conditions
from fleet.targeting.models import TargetState
from fleet.targeting.policy import Count
from fleet.targeting.services import (
    targets_absorb,
    targets_fail,
    targets_fail_forgotten,
    targets_freeze,
    targets_release,
)
from tasks import policy
from tasks.models import LIVE_PHASES, Phase, TaskRun, TaskTarget
from tasks.policy import Due
from tasks.selectors import blockers, counted, free, spec_of
from tasks.selectors.standing import silent, taken
from tasks.services.ending import stop
from tasks.services.history import count, phase_move, tell
from tasks.services.works import work_of
from upgrades.models import NEEDS_ROOT, OPEN, Attempt

MATCHES = 3
NEEDS_REPAIR = ", which needs root to run `fleet-updater repair` on the device"
NOBODY_IN_TIME = "The deadline passed before any device matched"


def taskrun_evaluate(*, run_id: int) -> None:
    """Freeze, absorb, release, stop, conclude (TSK-2 to TSK-5).

    May run at any time, twice at once, or late. A run that is over only takes in what its devices still say. A process
    that dies between two of its transactions leaves what the next call completes (R10).
    """
    step = _brought_up_to_date(run_id)
    if step in (Due.CANARIES, Due.REST):
        _release(run_id)
    elif step in (Due.FAIL, Due.EXPIRE):
        _stop(run_id)


def _brought_up_to_date(run_id: int) -> Due:
    for _ in range(MATCHES - 1):
        with suppress(IntegrityError):  # a device was forgotten between matching and freezing: match again
            return _bring_up_to_date(run_id)
    return _bring_up_to_date(run_id)


@contextmanager
def _found(run_id: int) -> Iterator[TaskRun | None]:
    try:
        with locked(TaskRun, run_id) as run:
            yield run
    except TaskRun.DoesNotExist:
        yield None


def _bring_up_to_date(run_id: int) -> Due:
    pending = TaskRun.objects.filter(pk=run_id, phase=Phase.PENDING).first()
    found = _match(pending) if pending else None
    with _found(run_id) as run:
        if run is None:
            return Due.WAIT
        if run.phase == Phase.PENDING:
            return _freeze(run, found) if found else Due.WAIT
        return _absorb(run)


def _match(run: TaskRun) -> Match:
    spec = spec_of(run)
    return match(spec.targetSelector, spec.allowedGroups)


def _freeze(run: TaskRun, found: Match) -> Due:
    now = clock.now()
    if now >= run.deadline_at:
        phase_move(run, to=Phase.FAILED, message=f"{NOBODY_IN_TIME}; {run.message}", now=now)
        return Due.WAIT
    if found.obstacle is not None:
        run.message = found.obstacle.message
        run.conditions = conditions.pending_conditions(run.conditions, found.obstacle, now=now, generation=1)
        return Due.WAIT
    size = targets_freeze(TaskTarget, chosen=found.chosen, owner={"run": run}, now=now)
    canaries = sum(choice.device.canary for choice in found.chosen)
    run.conditions = conditions.frozen_conditions(run.conditions, size, canaries, now=now, generation=1)
    frozen = f"{conditions.devices(size)} frozen, {canaries or 'none'} of them canary"
    phase_move(run, to=Phase.CANARY if canaries else Phase.RUNNING, message=frozen, now=now)
    for why, devices in work_of(run).unable(run, [choice.device.id for choice in found.chosen]).items():
        targets_fail(run.targets.filter(device_id__in=devices), message=why, now=now)
    return _decide(run, now)


def _absorb(run: TaskRun) -> Due:
    now = clock.now()
    targets_fail_forgotten(run.targets.exclude(state=TargetState.CONVERGED), now=now)
    work = work_of(run)
    work.follow(run)
    # Once a run is over, what came of a device is history, whichever agent is wanted of it next.
    open_ended = run.targets.all() if run.phase in LIVE_PHASES else run.targets.exclude(state=TargetState.CONVERGED)
    targets_absorb(open_ended, evidence=work.evidence(run), now=now)
    return _decide(run, now)


def _decide(run: TaskRun, now: datetime) -> Due:
    """The step that is due; what needs no device's head locked is done here."""
    canaries, rest = counted(run)
    step = Due.WAIT
    if run.phase in LIVE_PHASES:
        step = policy.due(canaries, rest, expired=now >= run.deadline_at)
        step = _conclude(run, step, now)
    count(run, canaries, rest, now)
    return step


def _conclude(run: TaskRun, step: Due, now: datetime) -> Due:
    canaries, rest = counted(run)
    if step is Due.COMPLETE:
        words = f"Done: {conditions.devices(canaries.total + rest.total)} completed"
        phase_move(run, to=Phase.COMPLETED, message=words, now=now)
    elif step is Due.SETTLE:
        words = policy.failed(blockers(run, Q(state=TargetState.FAILED)), canaries, rest, now)
        phase_move(run, to=Phase.FAILED, message=words, now=now)
    elif step in (Due.CANARIES, Due.REST, Due.WAIT):
        in_reach = _in_reach(run, step)
        _say_who_waits(in_reach)
        if step is not Due.WAIT and not free(in_reach).exists():
            step = Due.WAIT
        _say_what_it_waits_for(run, canaries, rest, now)
    return step


def _say_what_it_waits_for(run: TaskRun, canaries: Count, rest: Count, now: datetime) -> None:
    unfinished = Q(state__in=(TargetState.HELD, TargetState.RELEASED))
    if not policy.gate_is_open(canaries):
        unfinished &= Q(canary=True)
    words = policy.waiting(blockers(run, unfinished), canaries, rest, now)
    run.message = policy.with_advice(words, run.kind, str(run), silent(run))


def _in_reach(run: TaskRun, step: Due) -> QuerySet[TaskTarget]:
    """The held targets that may be released in this step (TSK-3)."""
    held: QuerySet[TaskTarget] = run.targets.filter(state=TargetState.HELD, device__isnull=False)
    return held if step is Due.REST else held.filter(canary=True)


def _say_who_waits(held: QuerySet[TaskTarget]) -> None:
    """A device does one thing at a time; the second waits and says for what (TSK-5)."""
    other = Attempt.objects.filter(device_id=OuterRef("device_id"), state__in=OPEN)
    repair = When(state__in=NEEDS_ROOT, then=Value(NEEDS_REPAIR))
    named = other.annotate(words=Concat(Value("waits for "), "title", Case(repair, default=Value(""))))
    words = Subquery(named.values("words")[:1])
    held.filter(taken()).exclude(message=words).update(message=words)


def _release(run_id: int) -> None:
    """Offer attempts to canaries at once, to the rest when every canary completed (TSK-3)."""
    now = clock.now()
    with _found(run_id) as run:
        if run is None or run.phase not in LIVE_PHASES:
            return
        step = policy.due(*counted(run), expired=now >= run.deadline_at)
        if step not in (Due.CANARIES, Due.REST):
            return
        devices = dict(free(_in_reach(run, step)).values_list("device_id", "device_name"))
        work = work_of(run)
        told = run.targets.filter(device_id__in=work.ask(run, devices), state=TargetState.HELD)
        released = targets_release(told, now=now)
        work.follow(run)
        _note_release(run, step, released, now)


def _note_release(run: TaskRun, step: Due, released: int, now: datetime) -> None:
    if step is Due.REST:
        run.opened_at = run.opened_at or now
        if run.phase == Phase.CANARY:
            phase_move(run, to=Phase.RUNNING, message="every canary completed", now=now)
    if released:
        who = "canary" if released == 1 else "canaries"
        words = f"{released} {who}" if step is Due.CANARIES else conditions.devices(released)
        tell(run, event="Released", message=f"offered to {words}", now=now)
    canaries, rest = counted(run)
    _say_what_it_waits_for(run, canaries, rest, now)
    count(run, canaries, rest, now)


def _stop(run_id: int) -> None:
    """A failed canary, or the deadline: nothing begins any more, for good (TSK-3, TSK-4)."""
    now = clock.now()
    with _found(run_id) as run:
        if run is None or run.phase not in LIVE_PHASES:
            return
        step = policy.due(*counted(run), expired=now >= run.deadline_at)
        if step is Due.FAIL:
            stop(run, why="withdrawn before it had begun, because a canary failed", now=now)
            canaries, rest = counted(run)
            words = policy.failed(blockers(run, Q(canary=True, state=TargetState.FAILED)), canaries, rest, now)
        elif step is Due.EXPIRE:
            stop(run, why="had not begun before the deadline, as far as it was heard", now=now)
            canaries, rest = counted(run)
            words = policy.expired(run.deadline_at, canaries + rest, now)
        else:
            return
        phase_move(run, to=Phase.FAILED, message=words, now=now)
        count(run, canaries, rest, now)
