"""What the updater keeps in its state folder, as files that survive a power loss at any moment (SYS-3).

    attempts/000012-<uid>.journal   one journal per attempt; the number in front is the order in which they came
    contact                         the boot in which the control plane last acknowledged a report of the agent
    reserve                         space that is given up when the disk is full, so that the journal can still grow
    lock, repair.lock               held by the running updater, and by a repair

Several processes may read; only the updater and, while an attempt waits for root, ``fleet-updater repair`` append.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from agent import durable
from agent.updater import journal
from agent.updater.attempt import ACCEPTED, Attempt
from agent.updater.journal import Contents, Event, Mark, Record
from agent.wire.messages import AttemptState

MOST_ATTEMPTS = 20
RESERVE_BYTES = 1_048_576
_SUFFIX = ".journal"
_NAME = re.compile(rf"\d+-[0-9a-f-]{{36}}{re.escape(_SUFFIX)}")
_ASIDE = ".set-aside"

logger = logging.getLogger("agent.updater")


class Busy(Exception):
    """Another process holds the state folder."""


class JournalStore:
    """The state folder. ``sync=False`` is for simulated machines, which lose power only in play. Thread-safe."""

    def __init__(self, folder: Path, *, sync: bool = True) -> None:
        self.folder = folder
        self._attempts = folder / "attempts"
        self._sync = sync
        self._lock = threading.RLock()
        self._known: dict[Path, tuple[tuple[int, int, int], Contents]] = {}

    def open(self) -> None:
        """Make the folders, put journals that cannot be read aside, and remove what a crash left half written."""
        self._attempts.mkdir(parents=True, exist_ok=True, mode=0o700)
        durable.remove_leftovers(self.folder)
        for path in self._paths():
            contents = self._read(path)
            if contents.damage:
                self._with_reserve(partial(self._set_aside, path, contents))
            elif contents.is_torn:
                last = contents.records[-1]
                note = _note(last, Mark.NONE, "A last line that was cut short, as by a power loss, was removed")
                self._with_reserve(partial(self._append, path, note))
        self._keep_reserve()

    def hold(self, name: str, message: str) -> IO[bytes]:
        """Hold one of the locks until the file is closed.

        Raises:
            Busy: with ``message``, when another process does.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (self.folder / name).open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise Busy(message) from None
        return file

    # Attempts ------------------------------------------------------------------------------------------------------

    def attempts(self) -> list[Attempt]:
        """All that are kept, newest first."""
        with self._lock:
            found = [(path, self._read(path).records) for path in reversed(self._paths())]
        return [Attempt(_uid(path), records) for path, records in found if records]

    def attempt(self, uid: str) -> Attempt | None:
        with self._lock:
            path = self._path(uid)
            records = self._read(path).records if path else ()
        return Attempt(uid, records) if records else None

    def create(self, uid: str, record: Record) -> Attempt:
        """Begin a journal, and forget the oldest ones that are too many.

        Raises:
            OSError: when it cannot be written; then nothing is known of the attempt.
        """
        with self._lock:
            paths = self._paths()
            serial = int(paths[-1].name.partition("-")[0]) + 1 if paths else 1
            self._keep_reserve()
            durable.write(self._attempts / f"{serial:06d}-{uid}{_SUFFIX}", journal.line(record), sync=self._sync)
            self._prune()
        return Attempt(uid, (record,))

    def append(self, attempt: Attempt, record: Record) -> Attempt:
        """Write one record behind the others, with the next number, and flush it to the disk.

        Raises:
            OSError: when it cannot be written; the journal is as it was.
        """
        with self._lock:
            path = self._path(attempt.uid)
            if path is None:
                raise FileNotFoundError(errno.ENOENT, "is gone", f"{self._attempts}/…-{attempt.uid}{_SUFFIX}")
            self._with_reserve(partial(self._append, path, record))
            return Attempt(attempt.uid, self._read(path).records)

    # Contact -------------------------------------------------------------------------------------------------------

    def contact(self) -> str:
        """The boot in which the agent last reached the control plane, or empty."""
        try:
            return (self.folder / "contact").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def note_contact(self, boot_id: str) -> None:
        """Raises OSError when it cannot be written."""
        if self.contact() != boot_id:
            durable.write(self.folder / "contact", boot_id.encode(), sync=self._sync)

    # Inside --------------------------------------------------------------------------------------------------------

    def _paths(self) -> list[Path]:
        """Oldest first."""
        try:
            found = os.listdir(self._attempts)
        except FileNotFoundError:
            return []
        return [self._attempts / name for name in sorted(found) if _NAME.fullmatch(name)]

    def _path(self, uid: str) -> Path | None:
        return next((path for path in self._paths() if _uid(path) == uid), None)

    def _read(self, path: Path) -> Contents:
        """From memory while the file is the same; a file that the disk does not give back is a damaged one."""
        with self._lock:
            try:
                stat = path.stat()
                signature = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
                known = self._known.get(path)
                if known is None or known[0] != signature:
                    with path.open("rb") as file:
                        known = signature, journal.read(file.read(journal.MAX_JOURNAL_BYTES + 1))
                    self._known[path] = known
                return known[1]
            except FileNotFoundError:
                return Contents((), 0)
            except OSError as error:
                return Contents((), 0, damage=f"cannot be read: {error.strerror}")

    def _append(self, path: Path, record: Record) -> None:
        contents = self._read(path)
        good = contents.good_bytes
        record = msgspec.structs.replace(record, number=len(contents.records) + 1)
        with path.open("r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                file.truncate(good)
                file.seek(good)
                _write_all(file, journal.line(record))
                if self._sync:
                    os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(good)
                raise

    def _set_aside(self, path: Path, contents: Contents) -> None:
        """Keep the bytes for a person, and go on with the records before the damage; whole at every moment."""
        aside = path.with_name(f"{path.name}{_ASIDE}")
        aside.unlink(missing_ok=True)
        os.link(path, aside)
        message = f"The journal of this attempt {contents.damage}; it was set aside as {aside}"
        is_over = bool(contents.records) and not Attempt("", contents.records).is_open
        last = contents.records[-1] if contents.records else Record(number=0, step=ACCEPTED, event=Event.NOTED)
        note = _note(last, Mark.DAMAGED, message, None if is_over else AttemptState.RUNNING)
        durable.write(path, b"".join(map(journal.line, (*contents.records, note))), sync=self._sync)
        logger.error("%s", note.message)

    def _prune(self) -> None:
        """What is open or waits for root is kept, however old it is."""
        ended = [path for path in self._paths() if _has_ended(self._read(path).records)]
        for path in ended[: max(0, len(self._paths()) - MOST_ATTEMPTS)]:
            path.with_name(f"{path.name}{_ASIDE}").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            self._known.pop(path, None)

    def _keep_reserve(self) -> None:
        """Best effort: a disk that has no room for it now is measured by the preflight."""
        reserve = self.folder / "reserve"
        if self._sync and not reserve.exists():
            with contextlib.suppress(OSError):
                durable.write(reserve, os.urandom(RESERVE_BYTES))

    def _with_reserve(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            if error.errno != errno.ENOSPC or not self._give_up_reserve():
                raise
            write()

    def _give_up_reserve(self) -> bool:
        """Whether there was one."""
        try:
            (self.folder / "reserve").unlink()
        except OSError:
            return False
        return True


def _note(last: Record, mark: Mark, message: str, state: AttemptState | None = None) -> Record:
    """As if written right after ``last``, in its boot: what was cut off stays cut off."""
    return Record(
        number=last.number + 1,
        step=last.step,
        event=Event.NOTED,
        mark=mark,
        at=last.at,
        boot_id=last.boot_id,
        uptime=last.uptime,
        message=journal.clipped(message),
        state=state,
    )


def _uid(path: Path) -> str:
    return path.name.removesuffix(_SUFFIX).partition("-")[2]


def _has_ended(records: tuple[Record, ...]) -> bool:
    if not records:
        return True
    attempt = Attempt("", records)
    return not attempt.is_open and not attempt.waits_for_root


def _write_all(file: IO[bytes], data: bytes) -> None:
    """An unbuffered write may be short, as on a disk that has just become full."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
