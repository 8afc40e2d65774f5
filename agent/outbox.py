"""Reports: whole snapshots with growing numbers, the same one repeated until it is acknowledged (R11)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from agent.clock import Clock
from agent.control import ControlError, ControlPlane, Unauthorised
from agent.ledger import Ledger
from agent.store import KeptReports, Store
from agent.wire.messages import MAX_REPORT_BYTES, AttemptReport, DeploymentReport, DesiredState, Facts, Report

#: Numbers are reserved on disk in blocks: a heartbeat need not wear out a flash card.
BLOCK = 64
_SHORT_MESSAGE_CHARS = 200


class AttemptSource(Protocol):
    """Where reports get what they say of upgrades."""

    def reports(self) -> list[AttemptReport]: ...

    def acknowledge(self, reports: Collection[AttemptReport], boot_id: str) -> None: ...


class Outbox:
    """At most one report is on its way; what changes meanwhile goes into the next."""

    def __init__(
        self, store: Store, ledger: Ledger, clock: Clock, facts: Callable[[], Facts], attempts: AttemptSource
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._ledger = ledger
        self._clock = clock
        self._facts = facts
        kept = store.reports()
        self._sequence = self._reserved = kept.reserved
        self._kept_deployments = kept.deployments
        self._is_known = kept.reserved > 0
        self._pending: Report | None = None
        self._news = threading.Event()
        self._last_sent: float | None = None
        self.acknowledged = 0
        self.notices: list[str] = []

    def has_news(self) -> bool:
        """Whether something changed since the last snapshot, or one is not acknowledged yet."""
        return self._pending is not None or self._news.is_set()

    def mark(self) -> None:
        """Something changed."""
        self._news.set()

    def last_sent(self) -> float | None:
        """When a report was acknowledged last, on the monotonic clock."""
        return self._last_sent

    def send(self, control: ControlPlane, desired: DesiredState | None) -> None:
        """Send the pending snapshot, or else a new one.

        Raises:
            ControlError: then the same snapshot is sent again next time, unless it was refused for what it is.
        """
        report = self._pending or _fitting(self._snapshot(desired))
        self._pending = report
        try:
            reply = control.report(report)
        except ControlError as error:
            if not error.is_temporary and not isinstance(error, Unauthorised):
                self._pending = None
                self._news.set()
            raise
        self._pending = None
        self.notices = list(reply.notices)
        if reply.resume_after > report.sequence or (reply.resume_after == report.sequence and not self._is_known):
            # Our numbers were lost; the server took this one for an old one.
            self._sequence = reply.resume_after
            self._news.set()
        else:
            self.acknowledged = report.sequence
            self._attempts.acknowledge(report.attempts, report.facts.boot_id)
            self._last_sent = self._clock.monotonic()
        self._is_known = True

    def _snapshot(self, desired: DesiredState | None) -> Report:
        self._news.clear()
        deployments = self._ledger.deployments()
        self._sequence += 1
        if self._sequence > self._reserved or deployments != self._kept_deployments:
            self._reserved = max(self._reserved, self._sequence + BLOCK - 1)
            self._store.save_reports(KeptReports(self._reserved, deployments))
            self._kept_deployments = deployments
        return Report(
            sequence=self._sequence,
            facts=self._facts(),
            sent_at=self._clock.now(),
            epoch=desired.epoch if desired else 1,
            desired_version=desired.version if desired else 0,
            deployments=deployments,
            problems=self._ledger.problems(),
            attempts=self._attempts.reports(),
        )


def _fitting(report: Report) -> Report:
    """What is too large for the control plane is shortened: states matter more than their sentences and digests.

    Of journals fewer entries are sent, because the others follow when these are acknowledged.
    """
    while _is_too_large(report) and any(len(item.entries) > 1 for item in report.attempts):
        report = msgspec.structs.replace(report, attempts=[_with_half_of_entries(item) for item in report.attempts])
    for shorten in (_with_short_message, _without_images):
        if not _is_too_large(report):
            break
        report = msgspec.structs.replace(report, deployments=[shorten(item) for item in report.deployments])
    return report


def _is_too_large(report: Report) -> bool:
    return len(msgspec.json.encode(report)) > MAX_REPORT_BYTES


def _with_half_of_entries(item: AttemptReport) -> AttemptReport:
    return msgspec.structs.replace(item, entries=item.entries[: (len(item.entries) + 1) // 2])


def _with_short_message(item: DeploymentReport) -> DeploymentReport:
    return msgspec.structs.replace(item, message=item.message[:_SHORT_MESSAGE_CHARS])


def _without_images(item: DeploymentReport) -> DeploymentReport:
    return msgspec.structs.replace(item, images={})
