"""A pass over all deployments of the device, each worked on by itself (AGT-12)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from agent.desired import Assignment
from agent.ledger import Ledger
from agent.reconcile.claims import deployment_of
from agent.reconcile.deployment import DeploymentWork, Tools, unseen
from agent.reconcile.plan import Verdict
from agent.runtime.base import Container, RuntimeFailure
from agent.wire.messages import DeploymentState, Problem

RUNTIME_UNREACHABLE = "RuntimeUnreachable"

logger = logging.getLogger("agent.reconcile")


class Workers(Protocol):
    """Runs jobs, and ``after`` each; one whose predecessor of the same name still runs is refused (``False``)."""

    def submit(self, name: str, job: Callable[[], None], after: Callable[[], None]) -> bool: ...


class InlineWorkers:
    """Each job at once, in the caller's thread: for tests, ``once`` and simulations."""

    def submit(self, name: str, job: Callable[[], None], after: Callable[[], None]) -> bool:
        job()
        after()
        return True


class ThreadWorkers:
    """One thread per running job, at most ``limit`` at work; a job that hangs keeps its own place only."""

    def __init__(self, limit: int = 32) -> None:
        self._places = threading.BoundedSemaphore(limit)
        self._lock = threading.Lock()
        self._busy: set[str] = set()

    def submit(self, name: str, job: Callable[[], None], after: Callable[[], None]) -> bool:
        with self._lock:
            if name in self._busy:
                return False
            self._busy.add(name)
        arguments = (name, job, after)
        threading.Thread(target=self._work, args=arguments, name=f"work-{name[:8]}", daemon=True).start()
        return True

    def _work(self, name: str, job: Callable[[], None], after: Callable[[], None]) -> None:
        try:
            with self._places:
                job()
        finally:
            with self._lock:
                self._busy.discard(name)
        after()


class Reconciler:
    """Passes, and when to look at which deployment again. ``on_due`` is called when that became sooner."""

    def __init__(self, tools: Tools, ledger: Ledger, workers: Workers) -> None:
        self._tools = tools
        self._ledger = ledger
        self._workers = workers
        self._lock = threading.Lock()
        self._works: dict[str, DeploymentWork] = {}
        self._due: dict[str, float] = {}
        #: The last pass that came by each deployment; by that a job knows whether it missed one.
        self._passes: dict[str, int] = {}
        self.on_due: Callable[[], None] = lambda: None

    def next_due(self) -> float | None:
        """When the earliest second look is due, on the monotonic clock."""
        with self._lock:
            return min(self._due.values(), default=None)

    def due(self) -> set[str]:
        """Deployments whose second look is due now."""
        now = self._tools.clock.monotonic()
        with self._lock:
            return {uid for uid, moment in self._due.items() if moment <= now}

    def run(
        self, assignments: Sequence[Assignment] | None, *, retry: bool, only: Collection[str] | None = None
    ) -> None:
        """One pass over all, or ``only`` over some; ``retry`` lets failed things be tried again."""
        if assignments is None:
            return
        try:
            containers = self._tools.runtime.containers()
        except RuntimeFailure as error:
            self._cannot_see(assignments, error)
            return
        self._ledger.solved(RUNTIME_UNREACHABLE)
        everything = [*assignments, *self._unlisted(assignments, containers)]
        self._forget({assignment.uid for assignment in everything}, {a.uid for a in assignments})
        for assignment in everything:
            if only is None or assignment.uid in only:
                self._dispatch(assignment, containers, {a.uid for a in assignments}, retry=retry)

    def _cannot_see(self, assignments: Sequence[Assignment], error: RuntimeFailure) -> None:
        self._ledger.complain(Problem(reason=RUNTIME_UNREACHABLE, message=str(error)))
        with self._lock:
            self._due.clear()
        for assignment in assignments:
            self._note(assignment, unseen(error))

    def _unlisted(self, assignments: Sequence[Assignment], containers: Sequence[Container]) -> list[Assignment]:
        """Deployments whose containers are here although the desired state does not have them (any more)."""
        listed = {assignment.uid for assignment in assignments}
        own = {deployment_of(c, self._tools.owner, self._tools.claims) for c in containers} - {""}
        return [Assignment(uid, remove=True) for uid in sorted(own - listed)]

    def _forget(self, known: set[str], listed: set[str]) -> None:
        with self._lock:
            self._works = {uid: work for uid, work in self._works.items() if uid in known}
            self._due = {uid: moment for uid, moment in self._due.items() if uid in known}
            self._passes = {uid: number for uid, number in self._passes.items() if uid in known}
        self._ledger.keep_only(listed)

    def _dispatch(
        self, assignment: Assignment, containers: Sequence[Container], listed: set[str], *, retry: bool
    ) -> None:
        uid = assignment.uid
        with self._lock:
            work = self._works.setdefault(uid, DeploymentWork(uid, self._tools))
            self._due.pop(uid, None)
            # Before it is known whether there is a place: the job that has it may end at this very moment.
            number = self._passes[uid] = self._passes.get(uid, 0) + 1

        verdicts: list[Verdict] = []

        def job() -> None:
            verdict = self._work_on(work, assignment, containers, retry=retry, quiet=uid not in listed)
            if uid in listed:
                self._note(assignment, verdict)
            verdicts.append(verdict)

        self._workers.submit(uid, job, lambda: self._look_again(uid, verdicts[0], number))

    def _work_on(
        self,
        work: DeploymentWork,
        assignment: Assignment,
        containers: Sequence[Container],
        *,
        retry: bool,
        quiet: bool,
    ) -> Verdict:
        def announce(message: str) -> None:
            if not quiet:
                self._ledger.announce(assignment.uid, self._revision(assignment), message)

        try:
            if assignment.remove:
                return work.remove(containers, announce=announce)
            if assignment.document is None:
                return Verdict(DeploymentState.PROGRESSING, assignment.problem)
            return work.reconcile(assignment.document, containers, retry=retry, announce=announce)
        except Exception as error:  # a fault in one deployment's work must not end the agent
            logger.exception("work on deployment %s failed", assignment.uid)
            return Verdict(DeploymentState.FAILED, f"unexpected error in the agent: {type(error).__name__}: {error}")

    def _note(self, assignment: Assignment, verdict: Verdict) -> None:
        revision = self._revision(assignment)
        self._ledger.record(assignment.uid, revision, verdict.state, verdict.message, verdict.images)

    def _revision(self, assignment: Assignment) -> int:
        """A removal is said of the revision that was there."""
        known = self._ledger.entry(assignment.uid)
        return known.revision if assignment.remove and known else assignment.revision

    def _look_again(self, uid: str, verdict: Verdict, number: int) -> None:
        """After what the verdict waits for; at once when a pass came by while this one was at work."""
        with self._lock:
            pause = verdict.again_in if self._passes.get(uid) == number else 0.0
            if pause is None:
                return
            self._due[uid] = self._tools.clock.monotonic() + pause
        self.on_due()
