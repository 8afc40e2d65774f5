"""What becomes of a wanted agent, from what its device and its attempt have said (UPG-1, UPG-2, UPG-9, TSK-5). Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from agent.wire.manifest import AgentUpgrade
from agent.wire.messages import AGENT_UPGRADE_CAPABILITY, OCI_ARTIFACT_V1
from upgrades.policy.attempts import NEEDS_ROOT, has_ended

#: Where a wanted agent stands.
CURRENT, WAITING, UNABLE, AT_WORK, FAILED = "current", "waiting", "unable", "under-way", "failed"
#: What an operator does about a failure; nothing is tried again by itself (UPG-2, case U6).
NOT_AGAIN = "it is not tried again until the target changes or an operator retries"
SETUP = "run `fleet-agent setup` of a newer release once on the device, as root"
REPAIR = "run `fleet-updater repair` on the device, as root"


@dataclass(frozen=True, slots=True)
class Known:
    """How the attempt for this very target stands. ``is_late``: it may not begin any more (TSK-4)."""

    state: str
    step: str = ""
    message: str = ""
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A wanted agent and its device.

    ``reported`` is the version that the device says it runs, empty before its first report; ``other`` the title of
    another attempt that keeps the device busy, with what it needs; ``since`` when ``reported`` became the wanted one.
    """

    target: AgentUpgrade
    reported: str
    architecture: str
    capabilities: Collection[str]
    attempt: Known | None
    other: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where it stands, in one sentence too, and what is due: withdraw an attempt that has not begun, then offer one."""

    state: str
    message: str
    withdraw: bool = False
    offer: bool = False


def verdict(case: Case) -> Verdict:
    """The same whenever it is asked: nothing here remembers what was missed (level-triggered)."""
    attempt, runs_it = case.attempt, case.reported == case.target.version
    not_begun = attempt is not None and attempt.state == "offered"
    if attempt and attempt.state != "withdrawn" and not has_ended(attempt.state) and not not_begun:
        return _begun(attempt)
    if runs_it:
        words = f"Runs agent {case.target.version}, reported since {case.since:%Y-%m-%d %H:%M} UTC"
        return Verdict(CURRENT, words, withdraw=not_begun)
    if attempt and has_ended(attempt.state):
        return _over(case, attempt)
    if attempt and not_begun and not attempt.is_late:
        return Verdict(AT_WORK, f"Agent {case.target.version} is offered; the device has not begun yet")
    return _due(case, withdraw=not_begun)


def _begun(attempt: Known) -> Verdict:
    if attempt.state in NEEDS_ROOT:
        words = _sentence(attempt.state, attempt.message)
        return Verdict(FAILED, words if "fleet-updater repair" in words else f"{words}; {REPAIR}")
    return Verdict(AT_WORK, _sentence(f"at {attempt.step}" if attempt.step else "has begun", attempt.message))


def _over(case: Case, attempt: Known) -> Verdict:
    """An attempt that began or was refused, and the device runs another agent: never again by itself."""
    if attempt.state == "completed":
        words = f"The upgrade to agent {case.target.version} completed, but the device reports {case.reported}"
        return Verdict(WAITING, f"{words}; {NOT_AGAIN}")
    if attempt.state == "given-up":
        return Verdict(FAILED, f"{_sentence(attempt.message or 'given up')}; {NOT_AGAIN}")
    where = f" at {attempt.step}" if attempt.step else ""
    return Verdict(FAILED, f"{_sentence(attempt.state + where, attempt.message)}; {NOT_AGAIN}")


def _due(case: Case, *, withdraw: bool) -> Verdict:
    if not case.reported:
        return Verdict(WAITING, "Waits for the device's first report", withdraw=withdraw)
    if obstacle := architecture_problem(case.target, case.architecture) or lack(case.target, case.capabilities):
        return Verdict(UNABLE, obstacle, withdraw=withdraw)
    if case.other:
        return Verdict(WAITING, f"Waits for {case.other}", withdraw=withdraw)
    words = f"Agent {case.target.version} is offered; the device has not begun yet"
    return Verdict(AT_WORK, words, withdraw=withdraw, offer=True)


def architecture_problem(target: AgentUpgrade, architecture: str) -> str:
    """Why this artifact is none for a device of this architecture (case U7); empty when it fits, or is not known."""
    if architecture in ("", target.architecture):
        return ""
    return (
        f"The artifact is for {target.architecture} and the device is {architecture}; "
        "set an agentUpgrade with an artifact of the device's architecture"
    )


def lack(target: AgentUpgrade, capabilities: Collection[str]) -> str:
    """What the device's updater cannot do; it is never upgraded from here, only by setup (UPG-9)."""
    if AGENT_UPGRADE_CAPABILITY not in capabilities:
        return f"The device's updater does not advertise {AGENT_UPGRADE_CAPABILITY}; {SETUP}"
    if target.url.startswith("oci://") and OCI_ARTIFACT_V1 not in capabilities:
        return f"The device's updater does not advertise {OCI_ARTIFACT_V1}, which oci:// needs; {SETUP}"
    return ""


def _sentence(*parts: str) -> str:
    words = ": ".join(part.rstrip(".") for part in parts if part)
    return words[:1].upper() + words[1:]
