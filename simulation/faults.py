"""Faults as layers around a control plane or a clock, and the lies that a device may tell. No I/O of their own.

Each layer is a :class:`~agent.control.ControlPlane` with another inside, so the agent's own code calls it unchanged,
and any of them can be put around any other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from agent.clock import Clock
from agent.control import ControlError, ControlPlane, Unreachable
from agent.wire.messages import MAX_GENERATION, DeploymentReport, DeploymentState, Report

REPORT = "/report"
#: Labels that only the control plane may give (TSK-1).
FOREIGN_LABELS = {"canary": "true", "device-id": "somebody-else"}


class Layer(ControlPlane):
    """Everything goes to ``inner`` as it is; a fault overrides the one call that all requests pass through."""

    def __init__(self, inner: ControlPlane) -> None:
        self._inner = inner

    def twin(self, url: str = "") -> ControlPlane:
        """A simulated device has one thread, so it needs no second connection, and none without its faults."""
        return self

    def _call(self, method: str, path: str, **options: Any) -> Any:
        return self._inner._call(method, path, **options)


class Unplugged(Layer):
    """No request gets through while ``is_offline`` says so."""

    def __init__(self, inner: ControlPlane, is_offline: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._is_offline = is_offline

    def _call(self, method: str, path: str, **options: Any) -> Any:
        if self._is_offline():
            raise Unreachable("the simulated network is down")
        return super()._call(method, path, **options)


class Slow(Layer):
    """Every request takes ``seconds`` longer."""

    def __init__(self, inner: ControlPlane, seconds: float, sleep: Callable[[float], None]) -> None:
        super().__init__(inner)
        self._seconds = seconds
        self._sleep = sleep

    def _call(self, method: str, path: str, **options: Any) -> Any:
        self._sleep(self._seconds)
        return super()._call(method, path, **options)


class Duplicating(Layer):
    """Every report arrives twice."""

    def _call(self, method: str, path: str, **options: Any) -> Any:
        if path == REPORT:
            super()._call(method, path, **options)
        return super()._call(method, path, **options)


class Reordering(Layer):
    """After every report, a copy of the one before it arrives."""

    def __init__(self, inner: ControlPlane) -> None:
        super().__init__(inner)
        self._before: dict[str, Any] | None = None

    def _call(self, method: str, path: str, **options: Any) -> Any:
        answer = super()._call(method, path, **options)
        if path == REPORT:
            if self._before is not None:
                with contextlib.suppress(ControlError):  # nobody waits for this answer
                    super()._call(method, path, **self._before)
            self._before = options
        return answer


class Lying(Layer):
    """What the agent reports is replaced by what ``lie`` makes of it."""

    def __init__(self, inner: ControlPlane, lie: Callable[[Report], Report]) -> None:
        super().__init__(inner)
        self._lie = lie

    def _call(self, method: str, path: str, **options: Any) -> Any:
        if path == REPORT:
            options["body"] = self._lie(options["body"])
        return super()._call(method, path, **options)


class Lie(StrEnum):
    """What a lying device claims; its containers exit at once with :attr:`CONVERGED`, else they are fine."""

    CONVERGED = "converged"
    REVISION = "revision"
    LABELS = "labels"


def _converged(item: DeploymentReport) -> DeploymentReport:
    return msgspec.structs.replace(item, state=DeploymentState.CONVERGED, message="")


def _next_revision(item: DeploymentReport) -> DeploymentReport:
    return msgspec.structs.replace(_converged(item), revision=min(item.revision + 1, MAX_GENERATION))


def claim_convergence(report: Report) -> Report:
    """Everything has converged, whatever the containers do."""
    return msgspec.structs.replace(report, deployments=[_converged(item) for item in report.deployments])


def claim_next_revision(report: Report) -> Report:
    """Everything has converged on a revision that the device was not told of."""
    return msgspec.structs.replace(report, deployments=[_next_revision(item) for item in report.deployments])


def claim_labels(report: Report) -> Report:
    """The device is a canary, and another one at that."""
    facts = msgspec.structs.replace(report.facts, labels={**report.facts.labels, **FOREIGN_LABELS})
    return msgspec.structs.replace(report, facts=facts)


LIES: Mapping[Lie, Callable[[Report], Report]] = {
    Lie.CONVERGED: claim_convergence,
    Lie.REVISION: claim_next_revision,
    Lie.LABELS: claim_labels,
}


class ClockOff:
    """A clock whose time of day is wrong by ``seconds``; intervals are right, as on any machine."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def now(self) -> float:
        return self._clock.now() + self._seconds

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def boottime(self) -> float:
        return self._clock.boottime()
