"""``fleet-updater repair``: root finishes what was interrupted, a package transaction (SYS-6) or a rollback (UPG-4).

The journal says what was done. The attempt then ends as failed, because its upgrade was not proven; the next one may
be taken on. Works beside a running updater, which leaves an attempt alone that waits for root.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.updater.attempt import REPAIR, Attempt
from agent.updater.binary.host import Host
from agent.updater.binary.repair import AgentRepair
from agent.updater.journal import Event, Record
from agent.updater.machine import Job, JobState, JobStatus, Machine
from agent.updater.store import JournalStore
from agent.updater.updater import log, stamped
from agent.wire.messages import AttemptState

LOCK = "repair.lock"
POLL_SECONDS = 1.0
_PROGRAMS = {Job.CONFIGURE: "dpkg --configure -a", Job.FIX: "apt-get -f install"}


class Repair:
    """``say`` prints a line for root, ``sleep`` waits between two looks at a program that runs."""

    def __init__(
        self,
        store: JournalStore,
        machine: Machine,
        host: Host,
        say: Callable[[str], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._store = store
        self._machine = machine
        self._agents = AgentRepair(host, say, sleep)
        self._say = say
        self._sleep = sleep

    def run(self) -> bool:
        """Repair what waits for it; whether nothing waits for root afterwards.

        Raises:
            Busy: when another repair runs.
            MachineError: when a program could not be started or gave no answer.
            OSError: when the journal cannot be written.
        """
        with self._store.hold(LOCK, "another fleet-updater repair runs"):
            waiting = [one for one in self._store.attempts() if one.waits_for_root]
            if not waiting:
                self._say("no attempt needs repair; see: fleet-updater status")
            repaired = [self._repair(attempt) for attempt in waiting]
            return all(repaired)

    def _repair(self, attempt: Attempt) -> bool:
        self._say(f"attempt {attempt.uid} stopped in its step {attempt.last.step}: {attempt.last.message}")
        is_rollback = attempt.state is AttemptState.ROLLBACK_FAILED
        return self._repair_agent(attempt) if is_rollback else self._repair_packages(attempt)

    def _repair_agent(self, attempt: Attempt) -> bool:
        attempt = self._write(attempt, Event.BEGAN, "Root looks for an agent that can be started")
        if not (place := self._agents.run(attempt)):
            self._write(attempt, Event.FAILED, "No release on this device could be started")
            return False
        done = f"Root brought the agent back: {place} runs. The upgrade itself did not succeed"
        self._write(attempt, Event.ENDED, done, AttemptState.FAILED)
        self._say(f"repaired: the agent of {place} runs; attempts are taken on again")
        return True

    def _repair_packages(self, attempt: Attempt) -> bool:
        problems = self._machine.package_problems()
        self._say(f"the package database now: {problems or 'every package is fully installed'}")
        found = problems or "every package fully installed"
        attempt = self._write(attempt, Event.BEGAN, f"Root repairs the packages; found: {found}")
        for job, program in _PROGRAMS.items():
            ended = self._run(attempt, job)
            said = f": {ended.tail}" if ended.tail else ""
            attempt = self._write(attempt, Event.NOTED, f"{program} ended with exit code {ended.exit_code}{said}")
        return self._verify(attempt)

    def _run(self, attempt: Attempt, job: Job) -> JobStatus:
        """In a unit of its own, so that it goes on when root's terminal is closed. No limit, as for the upgrade."""
        self._say(f"runs {_PROGRAMS[job]}")
        self._machine.start(attempt.uid, job)
        while (status := self._machine.observe(attempt.uid, job)).state is JobState.RUNNING:
            self._sleep(POLL_SECONDS)
        return status

    def _verify(self, attempt: Attempt) -> bool:
        if problems := self._machine.package_problems():
            self._write(attempt, Event.FAILED, f"The packages are still not fully installed: {problems}")
            self._say(f"still not repaired: {problems}")
            self._say("solve this by hand, then run fleet-updater repair again; until then no attempt is taken on")
            return False
        done = "Root repaired the packages: every package is fully installed. The upgrade itself was not verified"
        self._write(attempt, Event.ENDED, done, AttemptState.FAILED)
        self._say("repaired: every package is fully installed; attempts are taken on again")
        self._say("the upgrade was not verified: reboot the device, or let a new task run do the rest")
        return True

    def _write(self, attempt: Attempt, event: Event, message: str, state: AttemptState | None = None) -> Attempt:
        record = Record(number=0, step=REPAIR, event=event, message=message, state=state)
        attempt = self._store.append(attempt, stamped(self._machine, record))
        log(attempt)
        return attempt
