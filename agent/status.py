"""What ``fleet-agent status`` shows: written by the running agent, read by anybody who may read its state folder."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent.upgrades.memory import NEEDS_ROOT
from agent.wire.messages import AttemptState, DeploymentState, Problem
from agent.wording import utc


class DeploymentLine(msgspec.Struct, frozen=True):
    uid: str
    title: str
    revision: int
    state: DeploymentState
    since: float
    message: str = ""


class UpgradeLine(msgspec.Struct, frozen=True):
    """An attempt that is not over, with what the updater says of it."""

    attempt: str
    title: str
    state: AttemptState
    step: str = ""
    message: str = ""


class Status(msgspec.Struct, frozen=True):
    """Times are Unix seconds, 0 for never. ``contact_error`` is empty when the last call succeeded,
    ``updater_version`` while the updater does not answer.
    """

    device: str
    uid: str
    url: str
    agent_version: str
    written_at: float
    podman_version: str = ""
    epoch: int = 0
    desired_version: int = 0
    last_contact_at: float = 0.0
    acknowledged: int = 0
    contact_error: str = ""
    is_unauthorised: bool = False
    next_attempt_at: float = 0.0
    notices: list[str] = []
    problems: list[Problem] = []
    deployments: list[DeploymentLine] = []
    updater_version: str = ""
    capabilities: list[str] = []
    upgrades: list[UpgradeLine] = []


def lines(status: Status, *, is_running: bool) -> Iterator[str]:
    """The status as text for a terminal."""
    yield f"Device          {status.device} (uid {status.uid})"
    yield f"Agent           {status.agent_version}, {'running' if is_running else 'not running'}"
    yield f"Podman          {status.podman_version or 'not reached yet'}"
    yield f"Updater         {_updater(status)}"
    yield f"Control plane   {status.url}"
    yield f"Last contact    {_time(status.last_contact_at)}"
    if status.contact_error:
        yield f"Contact error   {status.contact_error}; next attempt {_time(status.next_attempt_at)}"
    if status.is_unauthorised:
        yield (
            "                The credential of this device is not accepted. An operator resets it in the control "
            "plane,\n                then run: fleet-agent enroll --token-file FILE"
        )
    yield f"Desired state   {_version(status)}"
    yield f"Last report     {status.acknowledged or 'none acknowledged yet'}"
    yield from (f"Notice          {notice}" for notice in status.notices)
    yield from (f"Problem         {problem.reason}: {problem.message}" for problem in status.problems)
    yield from (line for upgrade in status.upgrades for line in _upgrade(upgrade))
    yield "Deployments     none" if not status.deployments else "Deployments"
    for item in status.deployments:
        yield f"  {item.title} revision {item.revision}: {item.state} since {_time(item.since)}"
        if item.message:
            yield "    " + item.message.replace("\n", "\n    ")


def _updater(status: Status) -> str:
    if not status.updater_version:
        return "none answers"
    return f"{status.updater_version}, capable of {', '.join(status.capabilities) or 'nothing'}"


def _upgrade(item: UpgradeLine) -> Iterator[str]:
    yield f"Upgrade         {item.title}: {item.state}{f', {item.step}' if item.step else ''} (attempt {item.attempt})"
    if item.message:
        yield "    " + item.message.replace("\n", "\n    ")
    if item.state in NEEDS_ROOT:
        yield "    root ends it on this device with: fleet-updater repair"


def _time(seconds: float) -> str:
    return utc(seconds) if seconds else "never"


def _version(status: Status) -> str:
    if not status.epoch:
        return "none received yet"
    return f"version {status.desired_version}, epoch {status.epoch}"
