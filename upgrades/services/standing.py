"""The one step that brings wanted agents forward, whatever was missed before (level-triggered; UPG-2, TSK-5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta

import msgspec
from django.db import transaction

from agent.wire.manifest import AgentUpgrade
from agent.wire.updater import AGENT_UPGRADE_V1
from devices.services import mailbox
from fleet.core import audit, clock
from fleet.core.audit import Happening
from upgrades.models import Attempt, DesiredAgent, Standing
from upgrades.policy import Verdict
from upgrades.selectors import agents_judged, agents_unsettled
from upgrades.services.offering import Offer, attempts_offer_each, attempts_withdraw

#: How long an offered upgrade may wait for its device before it is offered anew (TSK-4).
BEGIN_WITHIN = timedelta(days=30)
BATCH = 2000
_FIELDS = ("attempt", "state", "state_since", "message")
_REASONS = {
    Standing.CURRENT: "AgentUpgradeDone",
    Standing.UNABLE: "AgentUpgradeRefused",
    Standing.UNDER_WAY: "AgentUpgradeOffered",
    Standing.FAILED: "AgentUpgradeFailed",
}


def agents_evaluate(*, device_ids: Collection[int] | None = None) -> int:
    """Bring the wanted agents of these devices (None: of all) to what is known; returns how many rows changed.

    May run at any time and twice at once. Locks nothing when nothing is due; the number of statements is constant.
    """
    found = agents_unsettled() if device_ids is None else DesiredAgent.objects.filter(device_id__in=device_ids)
    due = [row.device_id for row, verdict in agents_judged(found) if _is_due(row, verdict)]
    if not due:
        return 0
    with transaction.atomic():
        mailbox.heads_lock(device_ids=due)
        locked = DesiredAgent.objects.select_for_update(of=("self",)).filter(device_id__in=due).order_by("device_id")
        judged = [(row, verdict) for row, verdict in agents_judged(locked) if _is_due(row, verdict)]
        _withdraw([row for row, verdict in judged if verdict.withdraw])
        offered = _offer([row for row, verdict in judged if verdict.offer])
        before = {row.device_id: row.state for row, _verdict in judged}
        rows = list(_moved(judged, offered))
        DesiredAgent.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["pk"], update_fields=_FIELDS, batch_size=BATCH
        )
        audit.events(
            Happening("Device", row.device.name, reason, row.message)
            for row in rows
            if before[row.device_id] != row.state and (reason := _REASONS.get(Standing(row.state)))
        )
    return len(rows)


def _is_due(row: DesiredAgent, verdict: Verdict) -> bool:
    return verdict.offer or verdict.withdraw or (row.state, row.message) != (verdict.state, verdict.message)


def _withdraw(rows: Sequence[DesiredAgent]) -> None:
    own = Attempt.objects.filter(pk__in=[row.attempt_id for row in rows])
    attempts_withdraw(attempts=own, device_ids=[row.device_id for row in rows])


def _offer(rows: Sequence[DesiredAgent]) -> dict[int, Attempt]:
    until = clock.now() + BEGIN_WITHIN
    return attempts_offer_each(
        devices={row.device_id: row.device.name for row in rows},
        offers={
            row.device_id: Offer(
                executor=AGENT_UPGRADE_V1,
                task="",
                title=f"agent upgrade to {row.version}",
                begin_until=until,
                agent_upgrade=msgspec.convert(row.spec, AgentUpgrade),
            )
            for row in rows
        },
    )


def _moved(judged: Sequence[tuple[DesiredAgent, Verdict]], offered: Mapping[int, Attempt]) -> Iterator[DesiredAgent]:
    """The rows as their verdicts want them; a device that was forgotten meanwhile was offered nothing."""
    now = clock.now()
    for row, verdict in judged:
        if verdict.offer and row.device_id not in offered:
            continue
        row.attempt = offered.get(row.device_id, row.attempt)
        if row.state != verdict.state:
            row.state, row.state_since = verdict.state, now
        row.message = verdict.message
        yield row
