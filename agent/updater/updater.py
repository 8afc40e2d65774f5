"""The updater without its socket: what it answers, and the work on the one attempt that is open.

:meth:`Updater.answer` and :meth:`Updater.work` may be called from different threads. A killed updater is made again
from the same store and finds its place in the journal (SYS-5).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from agent.updater import journal
from agent.updater.actions import Deed, Seen, Wait, Write
from agent.updater.attempt import ACCEPTED, Attempt
from agent.updater.beginning import needs_time
from agent.updater.binary.steps import READINESS, is_ready, needs_ready
from agent.updater.executor import Executor
from agent.updater.intent import Intent
from agent.updater.journal import Event, Mark, Record
from agent.updater.machine import Machine, MachineError
from agent.updater.store import JournalStore
from agent.version import VERSION
from agent.wire.artifacts import url_problem
from agent.wire.messages import MAX_JOURNAL_ENTRIES, AttemptState
from agent.wire.updater import (
    AnyReply,
    AnyRequest,
    Begin,
    BeginAgentUpgrade,
    GetJournal,
    GetStatus,
    JournalPage,
    NoteContact,
    Noted,
    NoteReady,
    Refusal,
    Standing,
    UpdaterStatus,
)

IDLE_SECONDS = 30.0
NOT_WRITTEN_SECONDS = 30.0

logger = logging.getLogger("agent.updater")


@dataclass(frozen=True, slots=True)
class Release:
    """``built``: Unix seconds when this release was built; no sane clock says an earlier time."""

    version: str = VERSION
    built: float = 0.0


class Updater:
    """``on_change`` is called when there is something to work on at once."""

    def __init__(
        self, machine: Machine, store: JournalStore, executors: Sequence[Executor], release: Release | None = None
    ) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._machine = machine
        self._store = store
        self._executors = {executor.name: executor for executor in executors}
        self._release = release or Release()
        self._lock = threading.RLock()
        self._own: set[str] = set()
        self._waiting: dict[str, str] = {}
        self._trouble = ""

    # What the agent asks -------------------------------------------------------------------------------------------

    def answer(self, request: AnyRequest) -> AnyReply:
        """One reply to one request. A disk that can't be written is a refusal too, and the agent asks again.

        Raises:
            MachineError: when the device does not say in which boot it is.
        """
        try:
            match request:
                case GetStatus():
                    return self._status()
                case GetJournal():
                    return self._page(request)
                case Begin() | BeginAgentUpgrade():
                    with self._lock:
                        return self._begin(request)
                case NoteContact():
                    return self._note_contact(request)
                case NoteReady():
                    with self._lock:
                        return self._note_ready(request)
        except OSError as error:
            logger.error("%s cannot be written: %s", error.filename or self._store.folder, error.strerror)  # noqa: TRY400
            return Refusal(reason="busy", message=f"the updater cannot write its journal: {error.strerror}")

    def _status(self) -> UpdaterStatus:
        attempts = self._store.attempts()
        return UpdaterStatus(
            version=self._release.version,
            boot_id=self._machine.boot_id(),
            capabilities=[
                capability
                for executor in self._executors.values()
                if executor.is_available()
                for capability in executor.capabilities
            ],
            repair_required=_repair_required(attempts),
            attempts=[self._standing(attempt) for attempt in attempts],
        )

    def _page(self, request: GetJournal) -> AnyReply:
        attempt = self._store.attempt(request.attempt)
        if attempt is None:
            return Refusal(reason="unknown", message=f"no journal of an attempt {request.attempt} is kept here")
        records = attempt.records[request.after : request.after + MAX_JOURNAL_ENTRIES]
        return JournalPage(standing=self._standing(attempt), entries=[record.entry() for record in records])

    def _begin(self, request: Begin | BeginAgentUpgrade) -> AnyReply:
        intent = Intent.of(request)
        known = self._store.attempt(request.attempt)
        if known is not None:
            if intent.seconds > 0 and intent.contradicts(known):  # without a second it only takes back
                return Refusal(reason="invalid", message=f"attempt {known.uid} is known here, as another one")
            return self._standing(self._give_time(known, request.remaining_seconds))
        if refusal := self._refusal(intent):
            return refusal
        record = Record(
            number=1,
            step=ACCEPTED,
            event=Event.ENDED,
            message=f"{intent} may begin within {request.remaining_seconds} seconds",
            state=AttemptState.ACCEPTED,
            executor=intent.executor,
            target=intent.target,
            deadline=self._machine.boottime() + request.remaining_seconds,
        )
        attempt = self._store.create(request.attempt, stamped(self._machine, record))
        self._wrote(attempt)
        return self._standing(attempt)

    def _refusal(self, intent: Intent) -> Refusal | None:
        """Why a new attempt is not taken on (TSK-4, SYS-6, U8)."""
        attempts = self._store.attempts()
        if sentence := _repair_required(attempts):
            return Refusal(reason="repair-required", message=sentence)
        if busy := next((attempt for attempt in attempts if attempt.is_open), None):
            return Refusal(
                reason="busy", message=f"attempt {busy.uid} is open (step {busy.last.step}); try again later"
            )
        if intent.seconds <= 0:
            return Refusal(reason="expired", message="no seconds are left in which the attempt may begin")
        executor = self._executors.get(intent.executor)
        if executor is None or not executor.is_available():
            return Refusal(reason="invalid", message=f"this device cannot do {intent.executor}")
        if intent.target and (problem := url_problem(intent.target.url)):
            return Refusal(reason="invalid", message=f"the address of the release {problem}")
        return None

    def _give_time(self, attempt: Attempt, seconds: int) -> Attempt:
        """New seconds count when the old ones were of another boot, and when fewer are left than was said before."""
        if attempt.has_begun:
            return attempt
        deadline = self._machine.boottime() + seconds
        is_less = deadline < (attempt.deadline.deadline or 0.0) - 1.0
        if not needs_time(attempt, self._machine.boot_id()) and not is_less:
            return attempt
        message = f"May begin within {seconds} seconds"
        record = Record(number=0, step=ACCEPTED, event=Event.NOTED, message=message, mark=Mark.TIME, deadline=deadline)
        return self._append(attempt, record)

    def _note_ready(self, request: NoteReady) -> AnyReply:
        """What commits an agent upgrade (UPG-4): the word is on the disk before it is acknowledged."""
        attempt = self._store.attempt(request.attempt)
        if attempt is None or not needs_ready(attempt):
            return Refusal(reason="unknown", message=f"no attempt {request.attempt} waits for an agent that is ready")
        if attempt.target is None or request.version != attempt.target.version:
            return Refusal(reason="invalid", message=f"attempt {attempt.uid} does not wait for agent {request.version}")
        if not is_ready(attempt):
            message = f"Agent {request.version} has authenticated, stored its state and reached Podman"
            record = Record(number=0, step=READINESS, event=Event.NOTED, message=message, mark=Mark.READY)
            self._append(attempt, record)
        return Noted()

    def _note_contact(self, request: NoteContact) -> AnyReply:
        if request.boot_id == self._machine.boot_id():
            self._store.note_contact(request.boot_id)
            self.on_change()
        return Noted()

    def _standing(self, attempt: Attempt) -> Standing:
        waits = self._waiting.get(attempt.uid, "") if attempt.is_open else ""
        return Standing(
            attempt=attempt.uid,
            state=attempt.state,
            step=attempt.last.step,
            message=waits or attempt.last.message,
            last_number=attempt.last.number,
            needs_time=needs_time(attempt, self._machine.boot_id()),
            executor=attempt.executor,
            version=attempt.target.version if attempt.target else "",
            needs_ready=needs_ready(attempt) and not is_ready(attempt),
        )

    # The work ------------------------------------------------------------------------------------------------------

    def work(self) -> float:
        """Do the next thing for the open attempt; returns the seconds after which to be called again."""
        attempt = next((attempt for attempt in reversed(self._store.attempts()) if attempt.is_open), None)
        if attempt is None:
            return IDLE_SECONDS
        executor = self._executors.get(attempt.executor)
        if executor is None:
            return self._wait(attempt, Wait(IDLE_SECONDS, f"this release has no executor {attempt.executor}"))
        try:
            seen = self._seen(attempt)
            action = executor.decide(attempt, seen)
        except MachineError as error:
            return self._wait(attempt, Wait(IDLE_SECONDS, str(error)))
        if isinstance(action, Wait):
            return self._wait(attempt, action)
        try:
            written = self._write(attempt, action)
        except OSError as error:
            return self._stand_by(executor, attempt, seen, error)
        if written is None:
            self._trouble = seen.trouble
        elif action.deed:
            self._do(executor, written, action.deed)
        return 0.0

    def _seen(self, attempt: Attempt) -> Seen:
        """Trouble with the last deed is told once."""
        boot_id = self._machine.boot_id()
        trouble, self._trouble = self._trouble, ""
        return Seen(
            boot_id=boot_id,
            uptime=self._machine.boottime(),
            now=self._machine.now(),
            resumed=attempt.uid not in self._own,
            has_contact=self._store.contact() == boot_id,
            built=self._release.built,
            trouble=trouble,
        )

    def _wait(self, attempt: Attempt, wait: Wait) -> float:
        if self._waiting.get(attempt.uid) != wait.message:
            self._waiting = {attempt.uid: wait.message}
            logger.debug("attempt %s: %s", attempt.uid, wait.message)
        return wait.seconds

    def _write(self, attempt: Attempt, action: Write) -> Attempt | None:
        """None when the agent has said something since this was decided: then it is decided anew.

        Raises:
            OSError: the disk takes no record; then nothing is done either.
        """
        record = Record(
            number=0,
            step=action.step,
            event=action.event,
            message=action.message,
            mark=action.mark,
            state=action.state,
            kernel=action.kernel,
            release=action.release,
        )
        with self._lock:
            known = self._store.attempt(attempt.uid)
            is_as_decided = known is None or known.last.number == attempt.last.number
            return self._append(attempt, record) if is_as_decided else None

    def _do(self, executor: Executor, attempt: Attempt, deed: Deed) -> None:
        try:
            executor.do(attempt, deed)
        except MachineError as error:
            self._trouble = str(error)
            logger.warning("attempt %s: %s", attempt.uid, error)

    def _stand_by(self, executor: Executor, attempt: Attempt, seen: Seen, problem: OSError) -> float:
        """Wait for a disk that takes records again; what went wrong before is decided about then."""
        message = f"The journal cannot be written, so nothing more is done: {problem.strerror}"
        logger.error("attempt %s: %s", attempt.uid, message)
        try:
            self._trouble = executor.stand_by(attempt) or seen.trouble
        except MachineError as error:
            self._trouble = str(error)
        return self._wait(attempt, Wait(NOT_WRITTEN_SECONDS, message))

    # Records -------------------------------------------------------------------------------------------------------

    def _append(self, attempt: Attempt, record: Record) -> Attempt:
        """Raises OSError when it cannot be written."""
        with self._lock:
            attempt = self._store.append(attempt, stamped(self._machine, record))
        self._wrote(attempt)
        return attempt

    def _wrote(self, attempt: Attempt) -> None:
        """Every record is one line for journald, as an operator reads it."""
        self._own.add(attempt.uid)
        self._waiting.pop(attempt.uid, None)
        log(attempt)
        self.on_change()


def stamped(machine: Machine, record: Record) -> Record:
    """The record as one of this moment."""
    return msgspec.structs.replace(
        record,
        at=machine.now(),
        boot_id=machine.boot_id(),
        uptime=machine.boottime(),
        message=journal.clipped(record.message),
    )


def log(attempt: Attempt) -> None:
    """One record as one line: ``attempt 6f1e… upgrade began: …``."""
    record = attempt.last
    level = logging.ERROR if record.event is Event.FAILED else logging.INFO
    what = record.event if record.state in (None, AttemptState.RUNNING) else record.state
    said = record.step if record.step == what else f"{record.step} {what}"
    logger.log(level, "attempt %s: %s: %s", attempt.uid, said, " ".join(record.message.split()))


def _repair_required(attempts: Sequence[Attempt]) -> str:
    """The sentence of the attempt that waits for root, or empty."""
    broken = next((attempt for attempt in attempts if attempt.waits_for_root), None)
    return f"attempt {broken.uid} needs repair: {broken.cause.message}" if broken else ""
