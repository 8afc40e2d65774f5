"""What an agent upgrade does next, from its journal and from what is seen on the device (UPG-3 to UPG-8). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.updater import beginning
from agent.updater.actions import Wait, Write
from agent.updater.attempt import Attempt
from agent.updater.beginning import SOON, is_cut_off, since
from agent.updater.binary.case import REPAIR_HINT, Action, Case, begin, end
from agent.updater.binary.deeds import Restore, Switch, Tidy
from agent.updater.binary.host import AgentStatus
from agent.updater.binary.sights import Look, Sight, View
from agent.updater.binary.steps import (
    MOST_RESTARTS,
    PREFLIGHT,
    READINESS,
    RESTORE,
    RESTORE_PAUSE_SECONDS,
    START,
    STEADY_SECONDS,
    STEPS,
    STOP,
    SWITCH,
    after,
    is_ready,
    touches_the_agent,
)
from agent.updater.binary.trying import go_on_or_fail
from agent.updater.journal import Event, Mark
from agent.wire.manifest import AgentUpgrade
from agent.wire.messages import AttemptState
from agent.wording import duration


def decide(attempt: Attempt, view: View, limits: Mapping[str, float]) -> Action:
    """The next thing to do for an open attempt; asked again after it was done."""
    if attempt.target is None or attempt.is_damaged or attempt.place.step not in STEPS:
        return _unreadable(attempt, view)
    if not attempt.has_begun:
        return beginning.begin(attempt, view.seen, STEPS[PREFLIGHT])
    case = Case(attempt, attempt.target, view, limits)
    if attempt.place.step == RESTORE:
        return _restore(case)
    return _go_on_or_restore(case) if touches_the_agent(attempt.place.step) else go_on_or_fail(case)


# The agent is replaced -----------------------------------------------------------------------------------------------


def _go_on_or_restore(case: Case) -> Action:
    """From ``stop`` on, whatever is not as it should be brings the previous agent back (UPG-4)."""
    if is_ready(case.attempt):
        return _commit(case)
    if is_cut_off(case.attempt, case.seen):
        what = "The device" if case.place.boot_id != case.seen.boot_id else "The updater"
        return _begin_restore(case, f"{what} was started anew in the step {case.place.step}")
    if case.seen.trouble:
        return _begin_restore(case, case.seen.trouble)
    if case.place.event is Event.ENDED:
        step = after(case.place.step)
        return begin(step, Switch(case.candidate)) if step.name == SWITCH else begin(step)
    return _JUDGES[case.place.step](case)


def _stop(case: Case) -> Action:
    if case.view.agent is None:
        return Look(Sight.AGENT)
    if not case.view.agent.is_running:
        return end(STOP, "The agent is stopped; its containers go on")
    if case.is_over(STOP):
        return _begin_restore(case, f"The agent was still running {duration(case.limit(STOP))} after it was stopped")
    return Wait(SOON, "Waits for the agent to end")


def _switch(case: Case) -> Action:
    if case.view.active is None:
        return Look(Sight.ACTIVE)
    if case.view.active != case.candidate:
        return _begin_restore(case, f"`active` leads to {case.view.active}, not to {case.candidate}")
    return end(SWITCH, f"`active` leads to {case.candidate}")


def _start(case: Case) -> Action:
    if case.view.agent is None:
        return Look(Sight.AGENT)
    if case.view.agent.is_running:
        return end(START, "The candidate was started")
    if case.view.agent.restarts >= MOST_RESTARTS or case.is_over(START):
        return _begin_restore(case, "The candidate did not start")
    return Wait(SOON, "Waits for the candidate to start")


def _readiness(case: Case) -> Action:
    if case.view.agent is None:
        return Look(Sight.AGENT)
    if case.view.agent.restarts >= MOST_RESTARTS:
        words = f"The candidate ended and was restarted {case.view.agent.restarts} times before it was ready"
        return _begin_restore(case, words)
    if case.is_over(READINESS):
        limit = duration(case.limit(READINESS))
        return _begin_restore(case, f"The candidate did not say within {limit} that it is ready")
    return Wait(SOON, "Waits for the candidate to authenticate, store its state and reach Podman")


def _commit(case: Case) -> Action:
    if case.view.active is None and not case.seen.trouble:
        return Look(Sight.ACTIVE)
    if case.view.active != case.candidate:
        where = case.view.active or case.seen.trouble
        return _begin_restore(case, f"The candidate said that it is ready, but `active` does not lead to it: {where}")
    message = f"Agent {case.target.version} is ready and stays; {case.previous} is kept"
    return Write(READINESS, Event.ENDED, message, state=AttemptState.COMPLETED, deed=Tidy(case.previous))


# The previous agent comes back ---------------------------------------------------------------------------------------


def _begin_restore(case: Case, why: str) -> Write:
    return Write(RESTORE, Event.BEGAN, why, deed=Restore(case.previous))


def _restore(case: Case) -> Action:
    """Until the previous agent has stayed up for a while, or there is no time left (UPG-4)."""
    tries = [case.place, *case.attempt.notes(RESTORE, Mark.AGAIN)]
    is_over = case.is_over(RESTORE)
    if is_cut_off(case.attempt, case.seen):
        return _restore_again(case, "Was cut off")
    if case.seen.trouble:
        if is_over:
            return _rollback_failed(case, case.seen.trouble)
        if since(tries[-1], case.seen) < RESTORE_PAUSE_SECONDS:
            return Wait(RESTORE_PAUSE_SECONDS, case.seen.trouble)
        return _restore_again(case, case.seen.trouble)
    for sight in (Sight.ACTIVE, Sight.AGENT):
        if getattr(case.view, sight) is None:
            return Look(sight)
    return _judge_restored(case, is_over=is_over)


def _judge_restored(case: Case, *, is_over: bool) -> Action:
    agent, active = case.view.agent or AgentStatus(is_running=False), case.view.active
    if active == case.previous and agent.is_running and agent.seconds >= STEADY_SECONDS:
        message = f"{case.place.message}; the agent before it ({case.previous}) runs again"
        return Write(RESTORE, Event.ENDED, message, state=AttemptState.FAILED, deed=Tidy())
    problem = f"it does not stay up (restarted {agent.restarts} times)"
    if active != case.previous:
        problem = f"`active` leads to {active}, not to {case.previous}"
    if is_over:
        return _rollback_failed(case, problem)
    return Wait(SOON, f"Waits for {case.previous} to stay up") if _is_starting(case) else _restore_again(case, problem)


def _is_starting(case: Case) -> bool:
    """Whether systemd is at it: the link is right, and the unit runs, or was started a moment ago."""
    agent = case.view.agent or AgentStatus(is_running=False)
    tries = [case.place, *case.attempt.notes(RESTORE, Mark.AGAIN)]
    is_recent = since(tries[-1], case.seen) < 2 * RESTORE_PAUSE_SECONDS
    return case.view.active == case.previous and (agent.is_running or is_recent)


def _restore_again(case: Case, why: str) -> Write:
    return Write(RESTORE, Event.NOTED, f"{why}; restores again", Mark.AGAIN, deed=Restore(case.previous))


def _rollback_failed(case: Case, why: str) -> Write:
    what = f"{case.place.message}; the agent before it ({case.previous}) could not be brought back: {why}"
    return Write(RESTORE, Event.FAILED, f"{what}; {REPAIR_HINT}", state=AttemptState.ROLLBACK_FAILED)


# A journal that was spoilt -------------------------------------------------------------------------------------------


def _unreadable(attempt: Attempt, view: View) -> Action:
    """Nobody knows how far it came. What ``active`` leads to is started, and has to stay up."""
    if attempt.place.step == RESTORE and attempt.place.release:
        return _restore(Case(attempt, attempt.target or _NOBODY, view, {}))
    what = "The journal could not be read, so it is not known how far the upgrade came"
    if view.active is None and not view.seen.trouble:
        return Look(Sight.ACTIVE)
    if not view.active:
        message = f"{what}; {view.seen.trouble}; {REPAIR_HINT}"
        return Write(RESTORE, Event.FAILED, message, state=AttemptState.ROLLBACK_FAILED)
    return Write(RESTORE, Event.BEGAN, what, release=view.active, deed=Restore(view.active))


_NOBODY = AgentUpgrade(version="0.0.0", architecture="amd64", url="", maxSize=1, sha256="0" * 64)


_JUDGES: dict[str, Callable[[Case], Action]] = {STOP: _stop, SWITCH: _switch, START: _start, READINESS: _readiness}
