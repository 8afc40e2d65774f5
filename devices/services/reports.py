"""Taking in what devices say about themselves, and noticing who has fallen silent (DEV-4, DEV-5)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Manager, QuerySet

from agent.wire import messages
from devices import policy
from devices.models import Connectivity, Device, Heartbeat, ReportInbox
from devices.services.enrolment import KIND
from devices.services.mailbox import inbox_body, inbox_done, inbox_take
from devices.signals import device_changed
from fleet.core import audit, clock
from fleet.core.audit import Happening

log = logging.getLogger(__name__)

#: The kind of inbox rows that this app owns.
FACTS_KIND = "facts"
FACT_FIELDS = (
    "capabilities",
    "architecture",
    "os",
    "kernel",
    "boot_id",
    "agent_version",
    "updater_version",
    "podman_version",
)
#: Fields whose change is no event for people.
_WRITTEN = [*FACT_FIELDS, "reported_labels", "labels", "problems"]
_BEATEN = ["sequence", "last_seen", "connectivity", "connectivity_since"]
#: Rows per statement; with a device's 18 columns below the parameter limits of both databases.
WRITTEN_ROWS = 1000
Row = TypeVar("Row", Device, Heartbeat)


class SelfPortrait(messages.Message, frozen=True):
    """The part of a report that this app takes in."""

    facts: messages.Facts
    problems: list[messages.Problem] = msgspec.field(default_factory=list)


def drain_facts(*, limit: int = 2000) -> int:
    """Take in up to ``limit`` unread portraits; returns how many.

    Of several of one device the one with the highest sequence counts, and only if it is newer than what is known.
    A row that can't be read is dropped with an event.
    """
    with transaction.atomic():
        rows = inbox_take(kind=FACTS_KIND, limit=limit)
        if rows:
            _take_in(rows)
            inbox_done(rows)
    return len(rows)


def _take_in(rows: Iterable[ReportInbox]) -> None:
    newest: dict[int, ReportInbox] = {}
    for row in rows:
        known = newest.get(row.device_id)
        if known is None or row.sequence > known.sequence:
            newest[row.device_id] = row
    heartbeats = list(Heartbeat.objects.select_for_update().filter(device_id__in=list(newest)).order_by("device_id"))
    fresh = [(beat, newest[beat.device_id]) for beat in heartbeats if newest[beat.device_id].sequence > beat.sequence]
    happenings = _beat(fresh)
    happenings += _draw({beat.device_id: row for beat, row in fresh})
    audit.events(happenings)


def _beat(fresh: list[tuple[Heartbeat, ReportInbox]]) -> list[Happening]:
    """Note when each device was heard; one that was silent is online again."""
    now = clock.now()
    happenings = []
    back = {beat.device_id: beat.connectivity for beat, _row in fresh if beat.connectivity != Connectivity.ONLINE}
    names = dict(Device.objects.filter(pk__in=list(back)).values_list("pk", "name")) if back else {}
    for beat, row in fresh:
        beat.sequence = row.sequence
        beat.last_seen = max(row.received_at, beat.last_seen or row.received_at)
        state = policy.connectivity(beat.last_seen, now, thresholds())
        if beat.connectivity != state:
            if beat.device_id in names:
                happenings.append(_changed(names[beat.device_id], beat.connectivity, state))
            beat.connectivity, beat.connectivity_since = state, now
    _update(Heartbeat.objects, [beat for beat, _row in fresh], _BEATEN)
    return happenings


def _draw(rows: dict[int, ReportInbox]) -> list[Happening]:
    """Write the portraits of devices that have changed."""
    happenings: list[Happening] = []
    changed = []
    # Locked, so that an operator's labels of this moment are not lost; a report's foreign key does not wait for it.
    for device in Device.objects.select_for_update(no_key=True).filter(pk__in=list(rows)).order_by("pk"):
        try:
            portrait = msgspec.json.decode(inbox_body(rows[device.pk]), type=SelfPortrait)
        except msgspec.MsgspecError as error:
            happenings.append(Happening(KIND, device.name, "ReportUnreadable", f"A report was dropped: {error}"))
            continue
        if _apply(device, portrait, happenings):
            changed.append(device)
    _update(Device.objects, changed, _WRITTEN)
    if changed:
        transaction.on_commit(lambda: device_changed.send(sender=Device))
    return happenings


def _update(manager: Manager[Row], rows: list[Row], fields: Sequence[str]) -> None:
    """Write these fields of rows that we hold locked, so that they exist.

    As an upsert, because ``bulk_update`` spends milliseconds per row on its CASE expressions: 20 times as long.
    """
    manager.bulk_create(
        rows, update_conflicts=True, unique_fields=["pk"], update_fields=fields, batch_size=WRITTEN_ROWS
    )


def _apply(device: Device, portrait: SelfPortrait, happenings: list[Happening]) -> bool:
    before = {name: getattr(device, name) for name in _WRITTEN}
    facts = portrait.facts
    sifted = policy.sift(facts.labels)
    for name in FACT_FIELDS:
        setattr(device, name, getattr(facts, name))
    device.reported_labels = sifted.labels
    device.labels = policy.effective_labels(device.name, device.canary, device.operator_labels, sifted.labels)
    device.problems = [{"reason": one.reason, "message": one.message} for one in portrait.problems] + [
        {"reason": "LabelIgnored", "message": notice} for notice in sifted.notices
    ]
    happenings += _news(device, before)
    return before != {name: getattr(device, name) for name in _WRITTEN}


def _news(device: Device, before: dict[str, object]) -> Iterable[Happening]:
    """What people would want to read of the difference."""
    known = before["problems"]
    for problem in device.problems:
        if not isinstance(known, list) or problem not in known:
            yield Happening(KIND, device.name, problem["reason"], problem["message"])
    if before["boot_id"] and device.boot_id and before["boot_id"] != device.boot_id:
        yield Happening(KIND, device.name, "Rebooted", "The device has started anew")


def sweep_connectivity() -> int:
    """Move devices that have fallen silent to stale and offline; returns how many moved."""
    now = clock.now()
    moved = 0
    quiet = Heartbeat.objects.filter(last_seen__isnull=False).exclude(connectivity=Connectivity.OFFLINE)
    for state, limit in ((Connectivity.OFFLINE, thresholds().offline), (Connectivity.STALE, thresholds().stale)):
        since = now - timedelta(seconds=limit)
        moved += _fall_silent(quiet.filter(last_seen__lte=since).exclude(connectivity=state), state, now, since)
    return moved


def _fall_silent(silent: QuerySet[Heartbeat], state: Connectivity, now: datetime, since: datetime) -> int:
    with transaction.atomic():
        rows = list(silent.select_for_update(of=("self",)).order_by("device_id").select_related("device"))
        Heartbeat.objects.filter(pk__in=[row.pk for row in rows], last_seen__lte=since).update(
            connectivity=state, connectivity_since=now
        )
        audit.events([_changed(row.device.name, row.connectivity, state) for row in rows])
    return len(rows)


def _changed(name: str, before: str, after: str) -> Happening:
    words = {"online": "Online", "stale": "Stale", "offline": "Offline", "never": "Never"}
    return Happening(KIND, name, words[after], f"Was {before}, is {after}")


def thresholds() -> policy.Thresholds:
    """The thresholds in settings, in seconds."""
    return policy.Thresholds(settings.FLEET_STALE_SECONDS, settings.FLEET_OFFLINE_SECONDS)
