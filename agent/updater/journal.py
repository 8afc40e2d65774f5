"""One attempt's journal as it lies on disk: a JSON line per record, appended and flushed, never changed (SYS-3).

Each line ends in a checksum of the rest of it, because a spoilt one may still be JSON, of another meaning. Pure: bytes
in, records out. What goes over the wire is in :class:`~agent.wire.messages.JournalEntry`; the rest is what the updater
needs to find its place again after a crash.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from agent.wire.manifest import AgentUpgrade
from agent.wire.messages import MAX_MESSAGE_CHARS, AttemptState, JournalEntry
from agent.wording import printable

MAX_JOURNAL_BYTES = 4_194_304
_SEAL_CHARS = len(',"sum":"00000000"}')


class Event(StrEnum):
    BEGAN = "began"
    ENDED = "ended"
    FAILED = "failed"
    NOTED = "noted"


class Mark(StrEnum):
    """What a ``noted`` record is about, where decisions depend on it. Others, of later versions, are passed over."""

    NONE = ""
    TIME = "time"
    AGAIN = "again"
    SILENT = "silent"
    WAITS = "waits"
    RESUMED = "resumed"
    READY = "ready"
    KEPT = "kept"
    DAMAGED = "damaged"


class Record(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """``uptime``: seconds since boot when it was written, on the clock that nobody can set.

    ``state``: where the attempt stands from here on, when that changes. ``executor`` is in the first record.
    ``deadline``: with the mark ``time`` or in the first record, the uptime from which on nothing may begin, valid in
    this boot only. ``kernel``: when a reboot began, the kernel that should run afterwards; empty: not applicable.
    ``target``: of an agent upgrade, in the first record. ``release``: the place of the agent that runs before it.
    """

    number: int
    step: str
    event: Event
    at: float = 0.0
    boot_id: str = ""
    uptime: float = 0.0
    message: str = ""
    mark: str = Mark.NONE
    state: AttemptState | None = None
    executor: str = ""
    deadline: float | None = None
    kernel: str = ""
    target: AgentUpgrade | None = None
    release: str = ""

    def entry(self) -> JournalEntry:
        """What the control plane gets of it."""
        return JournalEntry(
            number=self.number,
            step=self.step,
            event=self.event,
            at=self.at,
            boot_id=self.boot_id,
            message=self.message,
        )


@dataclass(frozen=True, slots=True)
class Contents:
    """What a journal's bytes came to.

    ``good_bytes`` hold the records. ``is_torn``: a last line after them has no end, as after a power loss; it was never
    acted upon. ``damage`` says why the rest after them cannot be read although it was once whole; or is empty. The
    first line is never torn: a journal comes to be with it, at once.
    """

    records: tuple[Record, ...]
    good_bytes: int
    is_torn: bool = False
    damage: str = ""


def line(record: Record) -> bytes:
    return sealed(msgspec.json.encode(record))


def sealed(text: bytes) -> bytes:
    """A JSON object as a line of a journal, with its checksum as the last key."""
    return b'%s,"sum":"%08x"}\n' % (text[:-1], zlib.crc32(text))


def clipped(message: str) -> str:
    """A message that fits into an entry, without what a terminal would act upon; of a long one the end is kept."""
    clean = printable(message.strip())
    return clean if len(clean) <= MAX_MESSAGE_CHARS else f"…{clean[1 - MAX_MESSAGE_CHARS :]}"


def read(data: bytes) -> Contents:
    """Every record up to the first line that cannot be one; never raises."""
    if len(data) > MAX_JOURNAL_BYTES:
        return Contents((), 0, damage=f"is larger than {MAX_JOURNAL_BYTES} bytes")
    records: list[Record] = []
    good = 0
    while (end := data.find(b"\n", good)) >= 0:
        record = _record(data[good:end], len(records) + 1)
        if record is None:
            return Contents(tuple(records), good, damage=f"cannot be read from line {len(records) + 1} on")
        records.append(record)
        good = end + 1
    if not records:
        return Contents((), 0, damage="has no line that can be read")
    return Contents(tuple(records), good, is_torn=good < len(data))


def _record(text: bytes, number: int) -> Record | None:
    body = text[:-_SEAL_CHARS] + b"}"
    if sealed(body) != text + b"\n":
        return None
    try:
        record = msgspec.json.decode(body, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return record if record.number == number else None
