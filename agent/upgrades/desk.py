"""Between control plane and updater: attempts go down once, journals come up whole (TSK-4, SYS-3, SYS-4).

Everything is level-triggered: :meth:`UpgradeDesk.work` looks at what is wanted and at what the updater says, and does
what is missing. It may be called at any time; whatever was lost on the way is asked, sent or begun again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence

import msgspec

from agent.control import ControlError, Unauthorised
from agent.ledger import Ledger
from agent.store import Store
from agent.upgrades import intent
from agent.upgrades.client import NoUpdater, Updater, UpdaterError
from agent.upgrades.memory import BEGUN, ENDED, KeptAttempts, Told, acknowledged, is_settled, only
from agent.version import VERSION
from agent.wire.messages import (
    MAX_JOURNAL_ENTRIES,
    AttemptDocument,
    AttemptOffer,
    AttemptReport,
    AttemptState,
    JournalEntry,
    Problem,
)
from agent.wire.updater import (
    MAX_REMAINING_SECONDS,
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

#: While something is going on, and otherwise.
BUSY_SECONDS, IDLE_SECONDS = 2.0, 60.0
MAX_ATTEMPTS = 16
#: A journal's messages are what makes a report large; the rest follows with the next one.
MAX_ENTRY_CHARS = 200_000
UPDATER_UNAVAILABLE = "UpdaterUnavailable"
ATTEMPT_WAITS = "AttemptWaits"
ATTEMPT_LOST = "AttemptLost"
NOT_READY = "NotReady"

#: Asks the control plane how long an attempt may still begin; raises ControlError.
Offer = Callable[[str], AttemptOffer]

logger = logging.getLogger("agent.upgrades")


class UpgradeDesk:
    """:meth:`work` belongs to one thread, the others may call everything else.

    ``on_change`` is called when there is something new to report, ``on_wanted`` when there is something to do.
    ``lacks``: what this agent, of ``own_version``, still waits for until it is ready to stay, or empty (UPG-4).
    """

    def __init__(
        self, updater: Updater, store: Store, ledger: Ledger, lacks: Callable[[], str], own_version: str = VERSION
    ) -> None:
        self._updater = updater
        self._lacks = lacks
        self._own_version = own_version
        self._store = store
        self._ledger = ledger
        self._lock = threading.RLock()
        self._kept = store.attempts()
        self._wanted: dict[str, AttemptDocument] = {}
        self._is_asked = False
        self._status: UpdaterStatus | None = None
        self._entries: dict[str, list[JournalEntry]] = {}
        self._contact_of = ""
        self._contact_told = ""
        self.on_change: Callable[[], None] = lambda: None
        self.on_wanted: Callable[[], None] = lambda: None

    # From the control plane ----------------------------------------------------------------------------------------

    def take(self, documents: Collection[AttemptDocument]) -> None:
        """All attempts that are wanted now. One that was never begun and is not among them is forgotten."""
        with self._lock:
            wanted = {document.attempt: document for document in documents}
            has_news = wanted.keys() != self._wanted.keys()
            self._wanted, self._is_asked = wanted, True
        if has_news:
            self.on_wanted()

    # To the control plane ------------------------------------------------------------------------------------------

    def capabilities(self) -> Sequence[str]:
        """What the updater can do; nothing while it does not answer."""
        with self._lock:
            return list(self._status.capabilities) if self._status else []

    def version(self) -> str:
        """The updater's; empty while it does not answer."""
        with self._lock:
            return self._status.version if self._status else ""

    def standings(self) -> list[Standing]:
        """The attempts that are not over, as the updater said last; those that root has to end are among them."""
        with self._lock:
            return [each for each in self._status.attempts if each.state not in ENDED] if self._status else []

    def reports(self) -> list[AttemptReport]:
        """What the control plane does not know yet, and every attempt that is not over."""
        with self._lock:
            standings = self._status.attempts if self._status else []
            known = [self._report(standing) for standing in standings if not self._is_settled(standing)]
            refused = [
                AttemptReport(attempt=uid, state=AttemptState.REFUSED, message=message)
                for uid, message in self._kept.refused.items()
            ]
        return (refused + known)[:MAX_ATTEMPTS]

    def acknowledge(self, reports: Collection[AttemptReport], boot_id: str) -> None:
        """The control plane committed a report with these, which was made in that boot."""
        with self._lock:
            self._contact_of = boot_id
            kept = acknowledged(self._kept, reports)
            for uid, told in kept.told.items():
                self._entries[uid] = [entry for entry in self._entries.get(uid, []) if entry.number > told.number]
            self._keep(kept)
            is_contact_new = self._contact_told != boot_id
            has_more = any(self._entries.get(report.attempt) for report in reports)
        if has_more:
            self.on_change()
        if is_contact_new or any(report.entries for report in reports):
            self.on_wanted()

    # With the updater ----------------------------------------------------------------------------------------------

    def work(self, offer: Offer) -> float:
        """Look at what is wanted and how it goes; seconds until the next look."""
        before = self.reports(), self.capabilities(), self.version()
        try:
            status = self._ask_status()
            self._begin_what_is_wanted(status, offer)
            self._follow(self._ask_status() if self._wanted else status)
            self._tell_of_contact()
            self._say_ready(status)
        except UpdaterError as error:
            self._lose(error)
        else:
            self._ledger.solved(UPDATER_UNAVAILABLE)
        if (self.reports(), self.capabilities(), self.version()) != before:
            self.on_change()
        return BUSY_SECONDS if self._is_busy() else IDLE_SECONDS

    def _ask_status(self) -> UpdaterStatus:
        reply = self._updater.ask(GetStatus())
        if not isinstance(reply, UpdaterStatus):
            raise UpdaterError(_sentence(reply))
        return reply

    def _lose(self, error: UpdaterError) -> None:
        """What was accepted goes on without anybody asking; only what this device can be asked for is less."""
        with self._lock:
            attempts = self._status.attempts if self._status else []
            self._status = UpdaterStatus(version="", boot_id="", attempts=attempts) if attempts else None
            is_missed = bool(self._wanted or attempts or self._kept.has_updater)
            is_expected = isinstance(error, NoUpdater) and not is_missed
        if is_expected:
            self._ledger.solved(UPDATER_UNAVAILABLE)
        else:
            self._ledger.complain(Problem(reason=UPDATER_UNAVAILABLE, message=str(error)))

    def _begin_what_is_wanted(self, status: UpdaterStatus, offer: Offer) -> None:
        known = {standing.attempt: standing for standing in status.attempts}
        new = self._new(known)
        in_need = [uid for uid, standing in known.items() if standing.needs_time]
        waiting = [message for uid in new if (message := self._begin(uid, offer, is_known=False))]
        waiting += [message for uid in in_need if (message := self._begin(uid, offer, is_known=True))]
        if waiting:
            self._ledger.complain(Problem(reason=ATTEMPT_WAITS, message=waiting[0]))
        else:
            self._ledger.solved(ATTEMPT_WAITS)

    def _new(self, known: Collection[str]) -> list[str]:
        """What was not begun yet. Nothing is forgotten before it is known what is wanted, as after a start offline."""
        with self._lock:
            kept = msgspec.structs.replace(self._kept, has_updater=True)
            self._keep(only(kept, set(known) | self._wanted.keys()) if self._is_asked else kept)
            missing = [uid for uid in self._wanted if uid not in known]
            begun = [uid for uid in missing if self._kept.told.get(uid, Told()).state in BEGUN]
            new = [uid for uid in missing if uid not in self._kept.told and uid not in self._kept.refused]
        self._miss(begun)
        for uid in [uid for uid in new if not intent.is_known(self._wanted[uid])]:
            new.remove(uid)
            self._refuse(uid, f"this agent knows no {self._wanted[uid].executor}; install a newer release")
        return new

    def _miss(self, begun: Collection[str]) -> None:
        """Nobody can tell how they went: an operator may give them up."""
        if not begun:
            self._ledger.solved(ATTEMPT_LOST)
            return
        uid = min(begun)
        message = (
            f"the updater had begun attempt {uid} and does not know it any more, as when its state folder was lost; "
            f"see: fleet-updater status; an operator ends the waiting with: {intent.way_out(self._wanted[uid])}"
        )
        self._ledger.complain(Problem(reason=ATTEMPT_LOST, message=message))

    def _begin(self, uid: str, offer: Offer, *, is_known: bool) -> str:
        """Hand it over with the seconds that are left; what it waits for, if it does (TSK-4).

        An attempt that the control plane does not know any more never begins: the updater is given no second.
        """
        try:
            seconds = offer(uid).remaining_seconds
        except ControlError as error:
            if error.is_temporary or isinstance(error, Unauthorised):
                return f"attempt {uid} waits for the control plane, which says how long it may still begin: {error}"
            logger.info("attempt %s: %s", uid, error)
            seconds = 0
            if not is_known:
                return ""
        request = intent.request(uid, self._wanted.get(uid), min(max(seconds, 0), MAX_REMAINING_SECONDS))
        if request is None:
            return ""
        reply = self._updater.ask(request)
        if not isinstance(reply, Refusal) or is_known:
            return ""
        if reply.reason in ("busy", "not-allowed"):
            return f"attempt {uid} waits: {reply.message}"
        self._refuse(uid, reply.message)
        return ""

    def _refuse(self, uid: str, message: str) -> None:
        with self._lock:
            self._keep(msgspec.structs.replace(self._kept, refused={**self._kept.refused, uid: message}))

    def _follow(self, status: UpdaterStatus) -> None:
        """Fetch what was written since."""
        for standing in status.attempts:
            if self._last_number(standing.attempt) < standing.last_number:
                self._fetch(standing)
        with self._lock:
            self._status = status
            uids = {standing.attempt for standing in status.attempts}
            self._entries = {uid: entries for uid, entries in self._entries.items() if uid in uids}

    def _fetch(self, standing: Standing) -> None:
        page = self._updater.ask(GetJournal(standing.attempt, self._last_number(standing.attempt)))
        if isinstance(page, JournalPage):
            with self._lock:
                self._entries.setdefault(standing.attempt, []).extend(page.entries)

    def _last_number(self, uid: str) -> int:
        with self._lock:
            entries = self._entries.get(uid)
            return entries[-1].number if entries else self._kept.told.get(uid, Told()).number

    def _say_ready(self, status: UpdaterStatus) -> None:
        """The word that commits an upgrade to this very agent, and that no other may say (UPG-4)."""
        waiting = [each for each in status.attempts if each.needs_ready and each.version == self._own_version]
        if not waiting:
            self._ledger.solved(NOT_READY)
        elif missing := self._lacks():
            words = f"this agent is on trial and stays when it is ready; it still waits for {missing}"
            self._ledger.complain(Problem(reason=NOT_READY, message=words))
        else:
            self._updater.ask(NoteReady(waiting[0].attempt, self._own_version))
            self._ledger.solved(NOT_READY)

    def _tell_of_contact(self) -> None:
        with self._lock:
            boot_id = self._contact_of
        if boot_id and boot_id != self._contact_told:
            reply = self._updater.ask(NoteContact(boot_id))
            if isinstance(reply, Noted):
                self._contact_told = boot_id

    # Inside --------------------------------------------------------------------------------------------------------

    def _report(self, standing: Standing) -> AttemptReport:
        return AttemptReport(
            attempt=standing.attempt,
            state=standing.state,
            step=standing.step,
            message=standing.message,
            entries=_fitting(self._entries.get(standing.attempt, [])),
        )

    def _is_settled(self, standing: Standing) -> bool:
        return is_settled(self._kept.told.get(standing.attempt, Told()), standing.state, standing.last_number)

    def _is_busy(self) -> bool:
        with self._lock:
            standings = self._status.attempts if self._status else []
            is_open = any(standing.state not in ENDED for standing in standings)
            return is_open or bool(self._wanted.keys() - self._kept.told.keys() - self._kept.refused.keys())

    def _keep(self, kept: KeptAttempts) -> None:
        if kept != self._kept:
            self._kept = kept
            self._store.save_attempts(kept)


def _fitting(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """As many of the first as a report has room for; at least one."""
    chosen: list[JournalEntry] = []
    size = 0
    for entry in entries[:MAX_JOURNAL_ENTRIES]:
        size += len(entry.message)
        if chosen and size > MAX_ENTRY_CHARS:
            break
        chosen.append(entry)
    return chosen


def _sentence(reply: object) -> str:
    return reply.message if isinstance(reply, Refusal) else "the updater answered something else than was asked"
