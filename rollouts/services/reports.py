"""What devices said, from the inbox into observations. Newest wins, whatever order reports come in (ADR 4)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from django.db import transaction

from agent.wire.messages import DEPLOYMENT_KIND, DeploymentReport, DeploymentState
from devices.models import DesiredItem, Device, ReportInbox
from devices.services import mailbox
from fleet.core import audit
from fleet.targeting import wording
from rollouts.models import INBOX_KIND, Deployment, LastReport, Observation

log = logging.getLogger(__name__)

#: Rows per statement; PostgreSQL's protocol takes 65,535 parameters.
BATCH = 2000

_decode = msgspec.json.Decoder(list[DeploymentReport]).decode
_CONTENT = ("revision", "state", "message", "images", "since")
Key = tuple[int, UUID]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest report of one device about all its deployments."""

    device_id: int
    sequence: int
    received_at: datetime
    reports: dict[UUID, DeploymentReport]


@dataclass(frozen=True, slots=True)
class Drained:
    """How many inbox rows were taken, and the deployments about which something new was said."""

    rows: int
    touched: frozenset[UUID]


def reports_drain(*, limit: int) -> Drained:
    """Take at most ``limit`` rows of the inbox into observations, in one transaction.

    A row that can't be read is logged, told as an event and dropped; the others don't suffer from it (R4). Running
    twice, late or out of order changes nothing more: a snapshot counts only if its sequence is higher than what is
    known of that device. The number of statements does not depend on the number of rows.
    """
    with transaction.atomic():
        rows = mailbox.inbox_take(kind=INBOX_KIND, limit=limit)
        if not rows:
            return Drained(0, frozenset())
        snapshots = _only_newer(_newest(rows))
        touched = _observe(snapshots) | _confirm_removals(snapshots)
        mailbox.inbox_done(rows)
    return Drained(len(rows), frozenset(touched))


def _newest(rows: Iterable[ReportInbox]) -> dict[int, Snapshot]:
    """The newest readable snapshot per device."""
    found: dict[int, Snapshot] = {}
    broken: dict[int, str] = {}
    for row in sorted(rows, key=lambda row: row.sequence, reverse=True):
        if row.device_id in found:
            continue
        try:
            reports, strangers = _read(row)
        except ValueError as error:  # msgspec's errors are ValueErrors too
            broken[row.device_id] = f"report {row.sequence} about deployments was dropped: {error}"
            continue
        found[row.device_id] = Snapshot(row.device_id, row.sequence, row.received_at, reports)
        if strangers:
            broken[row.device_id] = f"in report {row.sequence}, {wording.names(strangers)} was passed over: no UUID"
    if broken:
        _complain(broken)
    return found


def _read(row: ReportInbox) -> tuple[dict[UUID, DeploymentReport], list[str]]:
    """The reports by deployment, and the uids that are none: a bad one does not make the others unsaid (R4)."""
    reports: dict[UUID, DeploymentReport] = {}
    strangers = []
    for report in _decode(mailbox.inbox_body(row)):
        try:
            reports[UUID(report.uid)] = report
        except ValueError:
            strangers.append(repr(report.uid))
    return reports, strangers


def _complain(broken: dict[int, str]) -> None:
    names = dict(Device.objects.filter(pk__in=broken).values_list("pk", "name"))
    for device_id, message in broken.items():
        name = names.get(device_id, "")
        log.warning("%s", message, extra={"device": name})
        audit.event(kind="Device", name=name, reason="InvalidReport", message=message)


def _only_newer(snapshots: dict[int, Snapshot]) -> dict[int, Snapshot]:
    """Leave out what is older than what is known, and remember the others as the last of their device.

    Holds the devices' rows until the end of the transaction, in ascending order: two drains take turns.
    """
    missing = [LastReport(device_id=pk, sequence=0, reported_at=one.received_at) for pk, one in snapshots.items()]
    LastReport.objects.bulk_create(missing, ignore_conflicts=True, batch_size=BATCH)
    rows = LastReport.objects.select_for_update().filter(device_id__in=list(snapshots)).order_by("device_id")
    newer = {
        row.device_id: snapshots[row.device_id] for row in rows if row.sequence < snapshots[row.device_id].sequence
    }
    LastReport.objects.bulk_create(
        [LastReport(device_id=pk, sequence=one.sequence, reported_at=one.received_at) for pk, one in newer.items()],
        update_conflicts=True,
        unique_fields=["device"],
        update_fields=["sequence", "reported_at"],
        batch_size=BATCH,
    )
    return newer


def _observe(snapshots: dict[int, Snapshot]) -> set[UUID]:
    """Make observations equal to the snapshots; returns the deployments about which something else is said now."""
    said = _said(snapshots.values())
    known = {(row.device_id, row.deployment_uid): row for row in Observation.objects.filter(device_id__in=snapshots)}
    news = [row for key, row in said.items() if key not in known or _differs(known[key], row)]
    Observation.objects.bulk_create(
        news,
        update_conflicts=True,
        unique_fields=["device", "deployment_uid"],
        update_fields=[*_CONTENT, "reported_at"],
        batch_size=BATCH,
    )
    # A snapshot lists everything: what it leaves out is no longer on the device.
    gone = [row for key, row in known.items() if key not in said]
    Observation.objects.filter(pk__in=[row.pk for row in gone]).delete()
    return {row.deployment_uid for row in [*news, *gone]}


def _differs(row: Observation, said: Observation) -> bool:
    return any(getattr(row, name) != getattr(said, name) for name in _CONTENT)


def _said(snapshots: Iterable[Snapshot]) -> dict[Key, Observation]:
    """Observations as reported, of deployments and revisions that exist.

    A device may still speak of a deployment that is gone. One that speaks of a revision to come is wrong: taken for
    true, it would be proof of that revision in the moment that it is made (DEP-11).
    """
    reported = {uid for snapshot in snapshots for uid in snapshot.reports}
    newest = dict(Deployment.objects.filter(uid__in=reported).values_list("uid", "generation"))
    return {
        (snapshot.device_id, uid): _observation(snapshot, uid, report)
        for snapshot in snapshots
        for uid, report in snapshot.reports.items()
        if report.revision <= newest.get(uid, -1)
    }


def _observation(snapshot: Snapshot, uid: UUID, report: DeploymentReport) -> Observation:
    return Observation(
        device_id=snapshot.device_id,
        deployment_uid=uid,
        revision=report.revision,
        state=report.state.value,
        message=report.message,
        images=report.images,
        since=_time(report.since),
        reported_at=snapshot.received_at,
    )


def _time(seconds: float) -> datetime | None:
    """A device's clock may say anything."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def _confirm_removals(snapshots: dict[int, Snapshot]) -> set[UUID]:
    """Items that a device has proven to be without are taken out of its desired state (DEP-14)."""
    removed = {
        (snapshot.device_id, uid)
        for snapshot in snapshots.values()
        for uid, report in snapshot.reports.items()
        if report.state == DeploymentState.REMOVED
    }
    if not removed:
        return set()
    items = DesiredItem.objects.filter(
        kind=DEPLOYMENT_KIND,
        remove=True,
        device_id__in={device for device, _ in removed},
        key__in={str(uid) for _, uid in removed},
    ).values_list("key", "device_id")
    confirmed: dict[str, list[int]] = {}
    for key, device_id in items.order_by("device_id"):
        if (device_id, UUID(key)) in removed:
            confirmed.setdefault(key, []).append(device_id)
    for key in sorted(confirmed):
        mailbox.desired_drop(kind=DEPLOYMENT_KIND, key=key, device_ids=confirmed[key])
    return {UUID(key) for key in confirmed}
