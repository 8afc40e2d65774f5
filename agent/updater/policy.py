"""What a system upgrade does next, from its journal and from what is seen on the device (SYS-1 to SYS-6). Pure."""

from __future__ import annotations

from collections.abc import Callable

from agent.updater import beginning, requirements
from agent.updater.actions import Action, Look, Reboot, Seen, Sight, StartJob, StopJob, Wait, Write
from agent.updater.attempt import Attempt
from agent.updater.beginning import LATER, SOON, is_cut_off, since
from agent.updater.journal import Event, Mark, Record
from agent.updater.machine import Job, JobState, JobStatus
from agent.updater.steps import (
    AUDIT,
    MOST_BOOTS_IN_VERIFY,
    MOST_REBOOTS,
    MOST_STARTS,
    PREFLIGHT,
    REBOOT,
    REBOOT_PAUSE_SECONDS,
    SILENCE_SECONDS,
    SIMULATE,
    STEPS,
    UPDATE,
    UPGRADE,
    VERIFY,
    Recovery,
    Step,
    after,
)
from agent.wire.messages import AttemptState
from agent.wording import duration

REPAIR_HINT = "run as root: fleet-updater repair"
_NOT_AGAIN = "apt was cut off, no package is left half installed, and it is not started again"


def decide(attempt: Attempt, seen: Seen) -> Action:
    """The next thing to do for an open attempt; asked again after it was done."""
    if attempt.is_damaged or attempt.place.step not in STEPS:
        return _unreadable(attempt, seen)
    if not attempt.has_begun:
        return beginning.begin(attempt, seen, STEPS[PREFLIGHT])
    place = attempt.place
    if is_cut_off(attempt, seen) and STEPS[place.step].recovery is Recovery.FAIL:
        return _fail_before_transaction(place, seen)
    step = after(place.step) if place.event is Event.ENDED else STEPS[place.step]
    if seen.trouble:
        return _trouble(step, place, seen)
    if place.event is Event.ENDED:
        return _begin_reboot(place, seen) if step.name == REBOOT else _begin(step)
    return _JUDGES[step.name](attempt, seen)


def _unreadable(attempt: Attempt, seen: Seen) -> Action:
    """Nobody knows how far it came, so the package database decides."""
    if seen.trouble:
        return Wait(LATER, seen.trouble)
    if seen.job is None:
        return Look(Sight.JOB, Job.UPGRADE)
    if seen.job.state is JobState.RUNNING:
        return Wait(LATER, "The journal could not be read; waits for apt, which still runs")
    if (first := _look_at_packages(attempt, seen)) is not None:
        return first
    if seen.packages:
        return _needs_repair(attempt.last.step, "The journal could not be read", seen.packages)
    return _fail(
        attempt.last.step,
        "The journal could not be read, so it is not known how far the upgrade came; no package is left half installed",
    )


def _fail_before_transaction(place: Record, seen: Seen) -> Write:
    """Preflight, package lists and simulation change nothing; a later attempt does them again."""
    what = "The device was started anew" if place.boot_id != seen.boot_id else "The updater was stopped"
    when = "in" if place.event is Event.BEGAN else "after"
    deed = StopJob(Job.UPDATE) if place.step == UPDATE else None
    return _fail(place.step, f"{what} {when} the step {place.step}; no package was changed", deed)


# The steps -----------------------------------------------------------------------------------------------------------


def _preflight(attempt: Attempt, seen: Seen) -> Action:
    if seen.lock is None:
        return Look(Sight.LOCK)
    if seen.lock:
        return _wait_for_lock(attempt, seen)
    if seen.packages is None:
        return Look(Sight.PACKAGES)
    if seen.volumes is None:
        return Look(Sight.VOLUMES)
    problems = [f"the package database is not clean, run dpkg --configure -a: {seen.packages}"] if seen.packages else []
    problems += filter(None, [requirements.clock_problem(seen.now, seen.built)])
    problems += requirements.space_problems(requirements.LEAST_BYTES, seen.volumes)
    return _fail(PREFLIGHT, _sentence(problems)) if problems else _end(PREFLIGHT, "The device is ready")


def _wait_for_lock(attempt: Attempt, seen: Seen) -> Action:
    """Somebody else installs packages; unattended-upgrades gets the time that it needs."""
    message = f"Waits for the lock of the package database, which {seen.lock} holds"
    if _is_over(PREFLIGHT, attempt.place, seen):
        return _fail(PREFLIGHT, f"{seen.lock} held the lock of the package database for an hour; nothing was changed")
    if not attempt.notes(PREFLIGHT, Mark.WAITS):
        return Write(PREFLIGHT, Event.NOTED, message, Mark.WAITS)
    return Wait(SOON, message)


def _update(attempt: Attempt, seen: Seen) -> Action:
    if seen.job is None:
        return Look(Sight.JOB, Job.UPDATE)
    if seen.job.state is JobState.ABSENT:
        return _fail(UPDATE, "apt-get update did not start; no package was changed")
    if seen.job.state is JobState.RUNNING:
        if _is_over(UPDATE, attempt.place, seen):
            limit = STEPS[UPDATE].limit_seconds or 0.0
            message = f"apt-get update took more than {duration(limit)} and was ended; no package was changed"
            return _fail(UPDATE, message, StopJob(Job.UPDATE))
        return Wait(SOON, f"apt-get update runs; {_silence(seen.job.silent_seconds)}")
    if seen.job.exit_code:
        return _fail(UPDATE, f"apt-get update ended with exit code {seen.job.exit_code}: {seen.job.tail}")
    return _end(UPDATE, "The package lists are fetched")


def _simulate(attempt: Attempt, seen: Seen) -> Action:
    if seen.simulation is None:
        return Look(Sight.SIMULATION)
    if seen.volumes is None:
        return Look(Sight.VOLUMES)
    problems = requirements.simulation_problems(seen.simulation, seen.volumes)
    if problems:
        return _fail(SIMULATE, f"No package was changed: {_sentence(problems)}")
    return _end(SIMULATE, requirements.simulation_summary(seen.simulation))


def _upgrade(attempt: Attempt, seen: Seen) -> Action:
    """No limit: whoever kills dpkg breaks the device (U8). A transaction that was lost decides by what it left."""
    job = seen.job
    if job is None:
        return Look(Sight.JOB, Job.UPGRADE)
    if job.state is JobState.RUNNING:
        return _apt_runs(attempt, seen, job.silent_seconds)
    if job.state is JobState.ENDED and job.exit_code == 0:
        return _end(UPGRADE, "The packages are upgraded")
    if (first := _look_at_packages(attempt, seen)) is not None:
        return first
    return _apt_failed(job, seen) if job.state is JobState.ENDED else _apt_is_gone(attempt, seen)


def _apt_failed(job: JobStatus, seen: Seen) -> Write:
    what = f"apt-get full-upgrade ended with exit code {job.exit_code}"
    if seen.packages:
        return _needs_repair(UPGRADE, f"{what}: {job.tail}", seen.packages)
    return _fail(UPGRADE, f"{what}; no package is left half installed: {job.tail}")


def _apt_is_gone(attempt: Attempt, seen: Seen) -> Action:
    """The power was lost in the middle, or the start never came about. What apt would do now may be something else than
    was simulated then: package lists are fetched by others too, and a disk fills up.
    """
    if seen.packages:
        return _needs_repair(UPGRADE, "The package transaction was interrupted", seen.packages)
    starts = 1 + len(attempt.notes(UPGRADE, Mark.AGAIN))
    if starts >= MOST_STARTS:
        return _fail(UPGRADE, f"apt was cut off {starts} times; no package is left half installed")
    if seen.simulation is None:
        return Look(Sight.SIMULATION)
    if seen.volumes is None:
        return Look(Sight.VOLUMES)
    if problems := requirements.simulation_problems(seen.simulation, seen.volumes):
        return _fail(UPGRADE, f"{_NOT_AGAIN}: {_sentence(problems)}")
    message = f"apt was cut off, but no package is left half installed; starts it again ({starts + 1} of {MOST_STARTS})"
    return Write(UPGRADE, Event.NOTED, message, Mark.AGAIN, deed=StartJob(Job.UPGRADE))


def _apt_runs(attempt: Attempt, seen: Seen, silent_seconds: float) -> Action:
    message = f"apt-get full-upgrade runs; {_silence(silent_seconds)}"
    if is_cut_off(attempt, seen):
        return Write(UPGRADE, Event.NOTED, "The updater was stopped; apt still runs and is waited for", Mark.RESUMED)
    if silent_seconds >= SILENCE_SECONDS * 2 ** len(attempt.notes(UPGRADE, Mark.SILENT)):
        return Write(UPGRADE, Event.NOTED, message, Mark.SILENT)
    return Wait(SOON, message)


def _audit(attempt: Attempt, seen: Seen) -> Action:
    if (first := _look_at_packages(attempt, seen)) is not None:
        return first
    if seen.packages:
        return _needs_repair(AUDIT, "The upgrade left packages that are not fully installed", seen.packages)
    return _end(AUDIT, "Every package is fully installed")


def _begin_reboot(place: Record, seen: Seen) -> Action:
    """An orderly reboot would kill somebody else's dpkg, so that one is waited for."""
    if seen.lock is None:
        return Look(Sight.LOCK)
    if seen.lock:
        if _is_over(REBOOT, place, seen):
            return _fail(REBOOT, f"Was not rebooted, because {seen.lock} held the lock of the packages for an hour")
        return Wait(SOON, f"Waits with the reboot for {seen.lock}, which holds the lock of the package database")
    if seen.kernels is None:
        return Look(Sight.KERNELS)
    kernel = seen.kernels.expected or ""
    expects = f"kernel {kernel} should run then" if kernel else "no kernel package is installed, so any kernel may run"
    message = f"{STEPS[REBOOT].begins}; {expects}"
    return Write(REBOOT, Event.BEGAN, message, kernel=kernel, deed=Reboot())


def _reboot(attempt: Attempt, seen: Seen) -> Action:
    """Only a boot id that is not the one from before is a reboot; the requests are counted, whatever happens (U1)."""
    requests = [attempt.place, *attempt.notes(REBOOT, Mark.AGAIN)]
    if seen.boot_id != attempt.place.boot_id:
        return _end(REBOOT, f"The device was started anew (boot {seen.boot_id})")
    if not seen.resumed and since(requests[-1], seen) < REBOOT_PAUSE_SECONDS:
        return Wait(SOON, "Waits for the reboot")
    if len(requests) >= MOST_REBOOTS:
        return _fail(
            REBOOT, f"The device did not reboot, though asked {len(requests)} times; its packages are upgraded"
        )
    message = f"The device did not reboot; asks again ({len(requests) + 1} of {MOST_REBOOTS})"
    return Write(REBOOT, Event.NOTED, message, Mark.AGAIN, deed=Reboot())


def _verify(attempt: Attempt, seen: Seen) -> Action:
    """Success needs proof (SYS-4): the new boot is what let this step begin, the rest is looked at here."""
    if seen.kernels is None:
        return Look(Sight.KERNELS)
    reboot = attempt.began(REBOOT)
    expected = reboot.kernel if reboot else ""
    if expected and seen.kernels.running != expected:
        return _fail(VERIFY, f"Kernel {seen.kernels.running} runs, but {expected} was expected after the reboot")
    if (first := _look_at_packages(attempt, seen)) is not None:
        return first
    if seen.packages:
        return _needs_repair(VERIFY, "Packages are not fully installed after the reboot", seen.packages)
    if not seen.has_contact:
        return _wait_for_contact(attempt, seen)
    proof = f"kernel {seen.kernels.running} runs, every package is fully installed, the agent reported"
    return Write(VERIFY, Event.ENDED, f"Verified: {proof}", state=AttemptState.COMPLETED)


def _wait_for_contact(attempt: Attempt, seen: Seen) -> Action:
    """Generous, because the network may come back late; but it ends, also on a device that never stays up."""
    missing = "the control plane to acknowledge a report of the agent in this boot"
    boots = len(attempt.notes(VERIFY, Mark.RESUMED))
    if _is_over(VERIFY, attempt.place, seen) or boots >= MOST_BOOTS_IN_VERIFY:
        return _fail(VERIFY, f"Waited in vain for {missing}; the packages are upgraded, the device was rebooted")
    if attempt.last.boot_id != seen.boot_id:
        return Write(VERIFY, Event.NOTED, f"The device was started anew; waits again for {missing}", Mark.RESUMED)
    if not attempt.notes(VERIFY, Mark.WAITS):
        return Write(VERIFY, Event.NOTED, f"Waits for {missing}", Mark.WAITS)
    return Wait(LATER, f"Waits for {missing}")


_JUDGES: dict[str, Callable[[Attempt, Seen], Action]] = {
    PREFLIGHT: _preflight,
    UPDATE: _update,
    SIMULATE: _simulate,
    UPGRADE: _upgrade,
    AUDIT: _audit,
    REBOOT: _reboot,
    VERIFY: _verify,
}


# What all of them use ------------------------------------------------------------------------------------------------


def _look_at_packages(attempt: Attempt, seen: Seen) -> Action | None:
    """What has to happen before the packages can be judged: while somebody installs, they always look unclean."""
    if seen.lock is None:
        return Look(Sight.LOCK)
    if seen.lock:
        step, holds = attempt.place.step, f"{seen.lock} holds the lock of the package database"
        if _is_over(step, attempt.place, seen):
            return _fail(step, f"Gave up: {holds}, so that nobody can say whether every package is fully installed")
        return Wait(SOON, f"Waits: {holds}")
    return Look(Sight.PACKAGES) if seen.packages is None else None


def _trouble(step: Step, place: Record, seen: Seen) -> Action:
    """The machine does not answer. Before the transaction, and where one that was cut off left nothing to wait for,
    that is a reason to fail, else one to ask again.
    """
    if seen.job and seen.job.state is JobState.ABSENT and seen.packages == "":
        return _fail(step.name, f"{_NOT_AGAIN}: {seen.trouble}")
    is_over = step.limit_seconds is not None and since(place, seen) >= step.limit_seconds
    if step.recovery is Recovery.FAIL or is_over:
        return _fail(step.name, seen.trouble)
    return Wait(LATER, seen.trouble)


def _is_over(name: str, record: Record, seen: Seen) -> bool:
    limit = STEPS[name].limit_seconds if name in STEPS else None
    return limit is not None and since(record, seen) >= limit


def _begin(step: Step) -> Write:
    return Write(step.name, Event.BEGAN, step.begins, deed=step.deed)


def _end(step: str, message: str) -> Write:
    return Write(step, Event.ENDED, message)


def _fail(step: str, message: str, deed: StopJob | None = None) -> Write:
    return Write(step, Event.FAILED, message, state=AttemptState.FAILED, deed=deed)


def _needs_repair(step: str, what: str, problems: str) -> Write:
    message = f"{what}; {REPAIR_HINT}. Found: {problems}"
    return Write(step, Event.FAILED, message, state=AttemptState.REPAIR_REQUIRED)


def _sentence(problems: list[str]) -> str:
    text = "; ".join(problems)
    return text[0].upper() + text[1:]


def _silence(seconds: float) -> str:
    return "its output goes on" if seconds < SILENCE_SECONDS else f"no output for {duration(seconds)}"
