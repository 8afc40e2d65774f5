"""When the agent does what; the what is in :mod:`agent.app`. Owns intervals, jitter, back-off and the threads."""

from __future__ import annotations

import logging
import math
import random
import threading
from collections.abc import Callable

from agent.app import Agent
from agent.attempts import Attempts
from agent.control import ControlError, Unauthorised
from agent.waiting import Word

JITTER = 0.1
#: At most this often reports go out because something changed.
CHANGE_GAP_SECONDS = 0.2
RECOVERY_SECONDS = 5.0

logger = logging.getLogger("agent")


class Engine:
    """Independent loops: one talks to the control plane, one works on containers (AGT-12), one waits for word, and one
    looks after the updater.

    :meth:`network`, :meth:`local`, :meth:`waiting` and :meth:`upgrading` do what is due and return the seconds until
    something is; a simulation calls them itself, :meth:`run` calls them from a thread each.
    """

    def __init__(self, agent: Agent, dice: random.Random | None = None) -> None:
        self._agent = agent
        self._clock = agent.clock
        self._timing = agent.config.agent
        self._dice = dice or random.Random()  # noqa: S311  (spreads load, hides nothing)
        self._poll = Attempts(self._timing.poll_seconds)
        self._report = Attempts(self._timing.poll_seconds)
        self._answer = Attempts(self._timing.poll_seconds)
        self._next_pass = 0.0
        self._changed = threading.Event()
        self._network_bell, self._local_bell, self._waiting_bell = (threading.Event() for _ in range(3))
        self._upgrade_bell = threading.Event()
        self._word = Word(agent, self._dice, on_poll=self._network_bell.set, on_wait=self._waiting_bell.set)
        self._rejected_credential = ""
        self._quiet_until = 0.0
        agent.ledger.on_change = self._on_ledger_change
        agent.reconciler.on_due = self._local_bell.set
        agent.logs.on_reply = self._network_bell.set
        agent.upgrades.on_change = self._on_ledger_change
        agent.upgrades.on_wanted = self._upgrade_bell.set

    # The control plane ---------------------------------------------------------------------------------------------

    def network(self) -> float:
        """Poll, report and answer as far as they are due; seconds until the next of them."""
        self._notice_new_credential()
        if self._clock.monotonic() >= self._poll_due():
            self._attempt(self._poll, self._do_poll)
        if self._clock.monotonic() >= self._report_due():
            self._attempt(self._report, self._do_report)
        if self._clock.monotonic() >= self._answer_due():
            self._attempt(self._answer, self._do_answer)
        error = self._poll.error or self._report.error
        next_due = min(self._poll_due(), self._report_due(), self._answer_due())
        pause = max(0.0, next_due - self._clock.monotonic())
        self._agent.write_status(error, next_attempt_at=self._clock.now() + pause)
        return pause

    def _do_poll(self) -> float:
        with self._word.heeded():
            changed = self._agent.poll()
        if changed:
            self._changed.set()
            self._local_bell.set()
        return self._clock.monotonic() + self._jittered(self._word.poll_pause(self._timing.poll_seconds))

    def _do_report(self) -> float:
        self._agent.report()
        return self._clock.monotonic() + CHANGE_GAP_SECONDS

    def _do_answer(self) -> float:
        self._agent.answer()
        return self._clock.monotonic()

    def _attempt(self, attempts: Attempts, call: Callable[[], float]) -> None:
        credential = self._agent.store.credential()
        try:
            attempts.succeeded(call())
        except ControlError as error:
            if not attempts.failures:
                logger.warning("control plane: %s", error)
            now = self._clock.monotonic()
            attempts.failed(error, now, self._dice)
            if error.retry_after:  # the server asks for quiet, not for another kind of call
                self._quiet_until = now + error.retry_after
            for every in self._calls:
                every.due = max(every.due, self._quiet_until)
            if isinstance(error, Unauthorised):
                self._rejected_credential = credential

    def _poll_due(self) -> float:
        """Soon when there is word, but never against its own back-off or a pause that was asked for.

        Trouble with reports alone is none of the polls': they are rare while word comes, so it must be heeded.
        """
        if self._poll.failures:
            return self._poll.due
        return max(self._word.poll_due(self._poll.due), self._quiet_until)

    def _report_due(self) -> float:
        """After a failure when the back-off says; else at once with news, and at every heartbeat."""
        last = self._agent.outbox.last_sent()
        if self._report.failures or self._agent.outbox.has_news() or last is None:
            return self._report.due
        return max(self._report.due, last + self._timing.heartbeat_seconds)

    def _answer_due(self) -> float:
        return self._answer.due if self._agent.logs.has_replies() else math.inf

    @property
    def _calls(self) -> tuple[Attempts, ...]:
        return self._poll, self._report, self._answer

    def _notice_new_credential(self) -> None:
        """Somebody enrolled this device again: no need to wait for the back-off's end (E3)."""
        if self._rejected_credential and self._agent.store.credential() != self._rejected_credential:
            self._rejected_credential, self._quiet_until = "", 0.0
            for attempts in self._calls:
                attempts.succeeded(due=0.0)
            self._word.start_anew()

    def waiting(self) -> float:
        """Wait for word from the control plane, if that is due: up to a minute; seconds until the next time."""
        return self._word.wait()

    def upgrading(self) -> float:
        """Look after the updater; seconds until the next time. Soon when something new is wanted of it."""
        return self._agent.upgrade()

    # The containers ------------------------------------------------------------------------------------------------

    def local(self) -> float:
        """A pass or a second look, as far as due; seconds until the next."""
        now = self._clock.monotonic()
        if now >= self._next_pass:
            self._changed.clear()
            self._next_pass = now + self._jittered(self._timing.pass_seconds)
            self._agent.reconcile(retry=True)
        elif self._changed.is_set():
            self._changed.clear()
            self._agent.reconcile(retry=False)
        elif due := self._agent.reconciler.due():
            self._agent.reconcile(retry=False, only=due)
        next_look = self._agent.reconciler.next_due()
        next_due = self._next_pass if next_look is None else min(self._next_pass, next_look)
        return max(0.0, next_due - self._clock.monotonic())

    # Threads -------------------------------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """All loops until ``stop`` is set and :meth:`wake` called. Containers are left as they are (AGT-11).

        Those that wait for others are not waited for: their threads end with the process.
        """
        network = threading.Thread(
            target=self._loop, args=(self.network, self._network_bell, stop), name="network", daemon=True
        )
        network.start()
        upgrading = (self.upgrading, self._upgrade_bell, stop)
        threading.Thread(target=self._loop, args=upgrading, name="upgrading", daemon=True).start()
        if self._agent.config.server.wait:
            waiting = (self.waiting, self._waiting_bell, stop)
            threading.Thread(target=self._loop, args=waiting, name="waiting", daemon=True).start()
        self._loop(self.local, self._local_bell, stop)
        network.join(RECOVERY_SECONDS)

    def wake(self) -> None:
        """Let all loops look around now."""
        for bell in (self._network_bell, self._local_bell, self._waiting_bell, self._upgrade_bell):
            bell.set()

    def _loop(self, step: Callable[[], float], bell: threading.Event, stop: threading.Event) -> None:
        while not stop.is_set():
            bell.clear()
            try:
                pause = step()
            except Exception:
                logger.exception("unexpected error; going on in %g s", RECOVERY_SECONDS)
                pause = RECOVERY_SECONDS
            bell.wait(pause)

    def _on_ledger_change(self) -> None:
        self._agent.outbox.mark()
        self._network_bell.set()

    def _jittered(self, seconds: float) -> float:
        return seconds * self._dice.uniform(1 - JITTER, 1 + JITTER)
