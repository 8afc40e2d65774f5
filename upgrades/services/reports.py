"""What devices said of their attempts, from the inbox into attempts and journals. Any order, any number of copies."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from django.db import transaction

from agent.wire.messages import AttemptReport
from devices.models import Device, ReportInbox
from devices.services import mailbox
from fleet.core import audit
from fleet.core.jobs import each
from upgrades import policy
from upgrades.models import INBOX_KIND, Attempt, JournalEntry
from upgrades.services.offering import attempts_tidy
from upgrades.services.standing import agents_evaluate

log = logging.getLogger(__name__)

BATCH = 2000
_FIELDS = ("state", "step", "message", "sequence", "accepted_at", "ended_at")
_decode = msgspec.json.Decoder(list[AttemptReport]).decode


@dataclass(frozen=True, slots=True)
class Drained:
    """How many inbox rows were taken, and the attempts that something was said of."""

    rows: int
    touched: frozenset[int]


@dataclass(frozen=True, slots=True)
class Word:
    """What one report says of one attempt."""

    row: ReportInbox
    said: AttemptReport


def reports_drain(*, limit: int) -> Drained:
    """Take at most ``limit`` rows of the inbox in, in one transaction; the number of statements is constant.

    What can't be read, and what a device says of an attempt that is not its own, is dropped with an event; the others
    don't suffer from it (R4).
    """
    with transaction.atomic():
        rows = mailbox.inbox_take(kind=INBOX_KIND, limit=limit)
        if not rows:
            return Drained(0, frozenset())
        complaints: dict[int, str] = {}
        words = list(_read(rows, complaints))
        touched = _take_in(words, complaints)
        _complain(complaints)
        mailbox.inbox_done(rows)
    attempts_tidy()
    each([{row.device_id for row in rows}], _look_at_agents)
    return Drained(len(rows), frozenset(touched))


def _look_at_agents(device_ids: set[int]) -> None:
    agents_evaluate(device_ids=device_ids)


def _read(rows: Iterable[ReportInbox], complaints: dict[int, str]) -> Iterable[Word]:
    for row in sorted(rows, key=lambda row: row.sequence):
        try:
            reports = _decode(mailbox.inbox_body(row))
        except ValueError as error:  # msgspec's errors are ValueErrors too
            complaints[row.device_id] = f"report {row.sequence} about attempts was dropped: {error}"
            continue
        yield from (Word(row, said) for said in reports)


def _take_in(words: list[Word], complaints: dict[int, str]) -> set[int]:
    uids = {uid for word in words if (uid := _uuid(word.said.attempt))}
    rows = Attempt.objects.select_for_update().filter(uid__in=uids).order_by("pk")
    attempts = {(row.device_id, str(row.uid)): row for row in rows}
    news: dict[int, Attempt] = {}
    entries: list[JournalEntry] = []
    for word in words:
        attempt = attempts.get((word.row.device_id, word.said.attempt))
        if attempt is None:
            complaints[word.row.device_id] = f"it spoke of the attempt {word.said.attempt!r}, which is none of its own"
            continue
        news[attempt.pk] = attempts[word.row.device_id, word.said.attempt] = _heard(attempt, word)
        entries += [_entry(attempt, each, word.row.received_at) for each in word.said.entries]
    Attempt.objects.bulk_create(
        news.values(), update_conflicts=True, unique_fields=["pk"], update_fields=_FIELDS, batch_size=BATCH
    )
    JournalEntry.objects.bulk_create(entries, ignore_conflicts=True, batch_size=BATCH)
    return set(news)


def _heard(known: Attempt, word: Word) -> Attempt:
    """The attempt after this word; its step and message are those of the newest report."""
    said, at = word.said, word.row.received_at
    state = policy.state_after(known.state, said.state.value)
    newer = word.row.sequence >= known.sequence and (state == said.state.value or not policy.has_ended(known.state))
    values = {field.attname: getattr(known, field.attname) for field in known._meta.concrete_fields}
    values |= {
        "state": state,
        "sequence": max(known.sequence, word.row.sequence),
        "accepted_at": known.accepted_at or (at if policy.has_begun(state) else None),
        "ended_at": (known.ended_at if known.state == state else at) if policy.has_ended(state) else None,
    }
    if newer:
        values |= {"step": said.step, "message": said.message}
    return Attempt(**values)


def _entry(attempt: Attempt, said: object, received_at: datetime) -> JournalEntry:
    fields = msgspec.structs.asdict(said)  # type: ignore[arg-type]  # a struct by its decoder
    return JournalEntry(**{**fields, "at": _time(fields["at"])}, attempt_id=attempt.pk, received_at=received_at)


def _complain(complaints: dict[int, str]) -> None:
    names = dict(Device.objects.filter(pk__in=complaints).values_list("pk", "name")) if complaints else {}
    for device_id, message in complaints.items():
        log.warning("%s", message, extra={"device": names.get(device_id, "")})
        audit.event(kind="Device", name=names.get(device_id, ""), reason="InvalidReport", message=message)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _time(seconds: float) -> datetime | None:
    """A device's clock may say anything."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        return None
