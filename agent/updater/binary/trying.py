"""What an agent upgrade does before the agent is touched: a failure changes nothing (UPG-3, UPG-8). Pure."""

from __future__ import annotations

from collections.abc import Callable

from agent.releases.description import formats_problem
from agent.updater.actions import Wait, Write
from agent.updater.beginning import SOON, is_cut_off
from agent.updater.binary.case import MEND, Action, Case, begin, end
from agent.updater.binary.deeds import Tidy
from agent.updater.binary.needs import space_problems
from agent.updater.binary.sights import Look, Sight
from agent.updater.binary.steps import (
    DOWNLOAD,
    MOST_BEGINNINGS,
    PREFLIGHT,
    PROBE,
    SELF_TEST,
    STEPS,
    STOP,
    TRIALS,
    UNPACK,
    VERIFY,
    after,
)
from agent.updater.journal import Event, Mark
from agent.updater.machine import JobState, JobStatus
from agent.wire.messages import AttemptState
from agent.wording import duration


def go_on_or_fail(case: Case) -> Action:
    """The next thing to do from ``preflight`` to ``probe``."""
    if is_cut_off(case.attempt, case.seen) and case.place.event is Event.BEGAN:
        return _again(case)
    if case.seen.trouble:
        return _fail(case, case.seen.trouble)
    return _begin_next(case) if case.place.event is Event.ENDED else _JUDGES[case.place.step](case)


def _begin_next(case: Case) -> Action:
    if case.place.step == PREFLIGHT and case.place.mark == Mark.KEPT:
        return begin(STEPS[SELF_TEST])
    step = after(case.place.step)
    if step.name != STOP:
        return begin(step)
    if case.view.active is None:
        return Look(Sight.ACTIVE)
    if case.view.active != case.previous:
        return _fail(case, f"`active` led to {case.previous} when this began and leads to {case.view.active} now")
    return begin(step)


def _again(case: Case) -> Action:
    """A step that was cut off is done again; not for ever."""
    step = case.place.step
    if step in TRIALS and not case.seen.trouble:
        if case.view.trial is None:
            return Look(Sight.TRIAL)
        if case.view.trial.state is not JobState.ABSENT:
            return Write(step, Event.NOTED, "The updater was started anew, and finds what it had started", Mark.RESUMED)
    beginnings = 1 + len(case.attempt.notes(step, Mark.AGAIN))
    if beginnings >= MOST_BEGINNINGS:
        return _fail(case, f"The step {step} was cut off {beginnings} times; nothing was changed")
    message = f"Was cut off; begins this step again ({beginnings + 1} of {MOST_BEGINNINGS})"
    return Write(step, Event.NOTED, message, Mark.AGAIN, deed=STEPS[step].deed)


# The steps -----------------------------------------------------------------------------------------


def _preflight(case: Case) -> Action:
    view = case.view
    if view.architecture is None:
        return Look(Sight.ARCHITECTURE)
    if case.target.architecture != view.architecture:
        return _fail(case, f"The release is for {case.target.architecture}, and this device is {view.architecture}")
    for sight in (Sight.ACTIVE, Sight.INSTALLED, Sight.KEPT, Sight.VOLUMES):
        if getattr(view, sight) is None:
            return Look(sight)
    if view.installed and view.installed.damage:
        damage = f"The active release {view.active} could not be restored: {view.installed.damage}"
        return _fail(case, f"{damage}; {MEND}")
    if view.kept:
        return _end_preflight_with_kept(case)
    problems = space_problems(case.target, view.volumes or {})
    ready = f"The device is ready; {view.active} runs until the candidate is tried"
    return _fail(case, "; ".join(problems)) if problems else end(PREFLIGHT, ready, release=view.active)


def _end_preflight_with_kept(case: Case) -> Action:
    if case.view.candidate is None:
        return Look(Sight.CANDIDATE)
    if problem := _formats(case):
        return _fail(case, problem)
    message = f"The device is ready; {case.candidate} is on the disk, whole; {case.view.active} runs until it is tried"
    return end(PREFLIGHT, message, release=case.view.active, mark=Mark.KEPT)


def _download(case: Case) -> Action:
    status = case.view.trial
    if status is None:
        return Look(Sight.TRIAL)
    if status.state is JobState.RUNNING:
        return _trial_runs(case, status, "The archive is being fetched")
    if problem := _trial_problem(status, "The archive could not be fetched"):
        return _fail(case, problem)
    return end(DOWNLOAD, "The archive is fetched")


def _verify(case: Case) -> Action:
    if case.view.verified is None:
        return Look(Sight.VERIFIED)
    if case.view.verified:
        return _fail(case, f"The archive is not the one that is wanted: {case.view.verified}")
    return end(VERIFY, f"The archive has the digest sha256 {case.target.sha256}")


def _unpack(case: Case) -> Action:
    view = case.view
    if view.unpacked is None:
        return Look(Sight.UNPACKED)
    if view.unpacked:
        return _fail(case, f"The archive holds no release that may run here: {view.unpacked}")
    for sight in (Sight.CANDIDATE, Sight.ACTIVE, Sight.INSTALLED):
        if getattr(view, sight) is None:
            return Look(sight)
    if problem := _formats(case):
        return _fail(case, problem)
    return end(UNPACK, f"Unpacked to {case.candidate}")


def _formats(case: Case) -> str:
    """Why the candidate could not be taken back, or empty (UPG-8)."""
    candidate, installed = case.view.candidate, case.view.installed
    if candidate is None or installed is None or installed.release is None:
        return ""
    problem = formats_problem(candidate.formats, installed.release.formats)
    return f"Agent {candidate.version} may not follow {installed.release.version}: {problem}" if problem else ""


def _self_test(case: Case) -> Action:
    status = case.view.trial
    if status is None:
        return Look(Sight.TRIAL)
    if status.state is JobState.RUNNING:
        return _trial_runs(case, status, "The candidate tests itself")
    if problem := _trial_problem(status, "The candidate's self-test failed"):
        return _fail(case, problem)
    said = _last_line(status)
    if case.target.version not in said.split():
        return _fail(case, f"The candidate's self-test said {said!r}, and not that it is {case.target.version}")
    return end(SELF_TEST, said)


def _probe(case: Case) -> Action:
    status = case.view.trial
    if status is None:
        return Look(Sight.TRIAL)
    if status.state is JobState.RUNNING:
        return _trial_runs(case, status, "The candidate calls the control plane")
    if problem := _trial_problem(status, "The candidate's probe failed"):
        return _fail(case, problem)
    return end(PROBE, _last_line(status))


def _trial_runs(case: Case, status: JobStatus, what: str) -> Action:
    step = case.place.step
    if case.is_over(step):
        last = f": {_last_line(status)}" if status.tail else ""
        return _fail(case, f"The step {step} took more than {duration(case.limit(step))} and was ended{last}")
    return Wait(SOON, what)


def _trial_problem(status: JobStatus, what: str) -> str:
    if status.state is JobState.ABSENT:
        return f"{what}: it did not start"
    if status.exit_code:
        return f"{what} (exit code {status.exit_code}): {_last_line(status) or 'it said nothing'}"
    return ""


_JUDGES: dict[str, Callable[[Case], Action]] = {
    PREFLIGHT: _preflight,
    DOWNLOAD: _download,
    VERIFY: _verify,
    UNPACK: _unpack,
    SELF_TEST: _self_test,
    PROBE: _probe,
}


def _fail(case: Case, message: str) -> Write:
    """Only before the agent is touched; what was staged goes."""
    return Write(case.place.step, Event.FAILED, message, state=AttemptState.FAILED, deed=Tidy())


def _last_line(status: JobStatus) -> str:
    lines = [line.strip() for line in status.tail.splitlines() if line.strip()]
    return lines[-1] if lines else ""
