"""What the control plane has acknowledged of attempts; kept on disk, so that nothing is lost and little is repeated."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from agent.wire.messages import AttemptReport, AttemptState

#: What root has to end with ``fleet-updater repair``.
NEEDS_ROOT = (AttemptState.REPAIR_REQUIRED, AttemptState.ROLLBACK_FAILED)
BEGUN = (AttemptState.ACCEPTED, AttemptState.RUNNING, *NEEDS_ROOT)
ENDED = (AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.REFUSED)


class Told(msgspec.Struct, frozen=True):
    """``number``: of the last journal entry that was acknowledged; ``state``: what was acknowledged last."""

    number: int = 0
    state: AttemptState | None = None


class KeptAttempts(msgspec.Struct, frozen=True):
    """By the attempts' uids. ``refused``: why nothing was begun, until that is acknowledged.

    ``has_updater``: one has answered before, so that a missing one is missed.
    """

    told: dict[str, Told] = {}
    refused: dict[str, str] = {}
    has_updater: bool = False


def acknowledged(kept: KeptAttempts, reports: Collection[AttemptReport]) -> KeptAttempts:
    """After the control plane took these in. An older number never takes a newer one's place."""
    told = dict(kept.told)
    for report in reports:
        before = told.get(report.attempt, Told()).number
        told[report.attempt] = Told(max([before, *(entry.number for entry in report.entries)]), report.state)
    ended = {report.attempt for report in reports if report.state is AttemptState.REFUSED}
    refused = {uid: message for uid, message in kept.refused.items() if uid not in ended}
    return msgspec.structs.replace(kept, told=told, refused=refused)


def is_settled(told: Told, state: AttemptState, last_number: int) -> bool:
    """Whether the control plane knows how it ended, and every entry of its journal."""
    return state in ENDED and told.state is state and told.number >= last_number


def only(kept: KeptAttempts, uids: Collection[str]) -> KeptAttempts:
    """Without what neither the control plane wants nor the updater knows any more."""
    return msgspec.structs.replace(
        kept,
        told={uid: told for uid, told in kept.told.items() if uid in uids},
        refused={uid: message for uid, message in kept.refused.items() if uid in uids},
    )
