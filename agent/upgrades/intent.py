"""What an attempt that is wanted is to the updater. Pure."""

from __future__ import annotations

from agent.wire.messages import AttemptDocument
from agent.wire.updater import AGENT_UPGRADE_V1, SYSTEM_UPGRADE_V1, Begin, BeginAgentUpgrade


def is_known(document: AttemptDocument) -> bool:
    """Whether this agent can hand it over; an agent upgrade has to say what it is to."""
    if document.executor == AGENT_UPGRADE_V1:
        return document.agent_upgrade is not None
    return document.executor == SYSTEM_UPGRADE_V1


def way_out(document: AttemptDocument) -> str:
    """The command by which an operator stops waiting for one that nobody knows any more."""
    if document.executor == AGENT_UPGRADE_V1:
        return "fleetctl device give-up-upgrade NAME"
    return "fleetctl taskrun give-up NAME DEVICE"


def request(uid: str, document: AttemptDocument | None, seconds: int) -> Begin | BeginAgentUpgrade | None:
    """The request that begins it, or gives it seconds; ``None`` for what this agent does not know how to say.

    An attempt that is not wanted any more is only told that no second is left, which is the same for each executor
    that has no more to say.
    """
    if document is None:
        return Begin(uid, SYSTEM_UPGRADE_V1, seconds)
    if document.executor == AGENT_UPGRADE_V1 and document.agent_upgrade is not None:
        return BeginAgentUpgrade(uid, seconds, document.agent_upgrade)
    return Begin(uid, SYSTEM_UPGRADE_V1, seconds) if document.executor == SYSTEM_UPGRADE_V1 else None
