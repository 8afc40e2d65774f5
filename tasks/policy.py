"""What is due for a run, and its sentences, from counts: pure (TSK-3, TSK-4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from enum import Enum

from agent.wire.manifest import AgentReleaseSpec, AgentUpgrade
from agent.wire.messages import APT_FULL_UPGRADE_V1
from fleet.targeting import wording
from fleet.targeting.conditions import Conditions, Stamp, devices
from fleet.targeting.policy import Count
from fleet.targeting.wording import Blocker
from upgrades.policy import lack

#: A time of a schedule that nobody looked at for longer than this is over: nothing begins at an hour nobody asked for.
PATIENCE = timedelta(hours=1)
NO_CAPABILITY = f"the device does not advertise the updater capability {APT_FULL_UPGRADE_V1}, so it is never sent this"
NO_REPORT = "the device has not said of which architecture it is; it is never sent this"


class Due(Enum):
    """The step that a frozen run has to take now."""

    CANARIES = "release canaries"
    REST = "release the rest"
    FAIL = "a canary failed"
    EXPIRE = "the deadline has passed"
    COMPLETE = "all completed"
    SETTLE = "all ended, some failed"
    WAIT = "wait"


def due(canaries: Count, rest: Count, *, expired: bool) -> Due:
    """Canaries first, and all of them (TSK-3); a failed one ends the run for good. Nothing begins too late (TSK-4)."""
    every = canaries + rest
    if canaries.failed:
        return Due.FAIL
    if not every.held and not every.waiting:
        return Due.SETTLE if every.failed else Due.COMPLETE
    if expired:
        return Due.EXPIRE
    if canaries.held:
        return Due.CANARIES
    return Due.REST if rest.held and gate_is_open(canaries) else Due.WAIT


def gate_is_open(canaries: Count) -> bool:
    """Whether devices that are no canaries may be released: every canary completed (TSK-3)."""
    return canaries.converged == canaries.total


def waiting(blockers: Sequence[Blocker], canaries: Count, rest: Count, now: datetime) -> str:
    """What a live run waits for."""
    in_trial = not gate_is_open(canaries)
    of = canaries if in_trial else canaries + rest
    missing = of.total - of.converged - of.failed
    return wording.waiting(blockers, missing=missing, total=of.total, canaries=in_trial, now=now)


def with_advice(words: str, kind: str, run: str, silent: str) -> str:
    """``words``, and what to do about a device that has begun and is silent since (TSK-5); empty: about nobody."""
    command = f"fleetctl {kind.lower()} give-up {run} {silent}"
    return f"{words}; if {silent} will not come back: {command}" if silent else words


def artifact(spec: AgentReleaseSpec, architecture: str) -> AgentUpgrade | None:
    """What a device of this architecture shall run; None when the release has nothing for it (UPG-10, case U7)."""
    for each in spec.artifacts:
        if each.architecture == architecture:
            return AgentUpgrade(spec.version, each.architecture, each.url, each.maxSize, each.sha256)
    return None


def cannot_be_sent(spec: AgentReleaseSpec, architecture: str, capabilities: Collection[str]) -> str:
    """Why a device is never sent this release; or empty (case U7)."""
    if not architecture:
        return NO_REPORT
    target = artifact(spec, architecture)
    if target is None:
        there = ", ".join(each.architecture for each in spec.artifacts)
        return f"the release has artifacts for {there} and the device is {architecture}; it is never sent another's"
    return lack(target, capabilities)


def failed(blockers: Sequence[Blocker], canaries: Count, rest: Count, now: datetime) -> str:
    """``Canary edge-7 failed: …; nothing more is released, and completed upgrades stay``, or who else failed."""
    of = canaries if canaries.failed else canaries + rest
    words = wording.failures(blockers, count=of.failed, total=of.total, canaries=canaries.failed > 0, now=now)
    return f"{words}; nothing more is released, and completed upgrades stay" if canaries.failed else words


def expired(deadline: datetime, every: Count, now: datetime) -> str:
    """How a run stands that met its deadline; ``waiting`` are those that had begun."""
    parts = [f"{every.converged} of {devices(every.total)} completed"]
    parts += [f"{every.failed} failed"] if every.failed else []
    parts += [f"{every.ended} not started"] if every.ended else []
    parts += [f"{every.waiting} still at work and not interrupted"] if every.waiting else []
    return f"The deadline passed at {wording.moment(deadline, now)}: {', '.join(parts)}"


def conditions(existing: Conditions, phase: str, every: Count, message: str, now: datetime) -> Conditions:
    """The conditions of a run after its freeze. A run has one generation: its spec never changes (TSK-7)."""
    stamp = Stamp(existing, now, 1)
    live = phase in ("Pending", "Canary", "Running")
    stamp.set("Progressing", live, phase, message if live else "")
    stamp.set("Degraded", every.failed > 0, "DevicesFailed" if every.failed else "NoneFailed", "")
    stamp.set("Ready", phase == "Completed", phase, message)
    return stamp.conditions


def newest_time(first: datetime, now: datetime, after: Callable[[datetime], datetime]) -> datetime | None:
    """Of the times from ``first`` to ``now`` the one to act upon: the newest, so that they don't pile up (TSK-9).

    ``after`` gives the time that follows a moment. None when all of them are longer ago than :data:`PATIENCE`.
    """
    oldest = now - PATIENCE
    due = first if first >= oldest else after(oldest)
    if due > now:
        return None
    while (following := after(due)) <= now:
        due = following
    return due
