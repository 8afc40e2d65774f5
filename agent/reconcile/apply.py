"""Carrying out steps. Each is idempotent as far as the runtime is, and none is assumed to have worked: the next look
shows what came of it.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.reconcile.plan import STOP_SECONDS, Create, Remove, Start, Step, Unpause
from agent.runtime.base import Runtime, RuntimeFailure, State


class StepFailure(Exception):
    """A step that the runtime refused; ``container_id`` is the container that exists in spite of it, if any."""

    def __init__(self, message: str, *, name: str, container_id: str = "", unstartable: bool = False) -> None:
        super().__init__(message)
        self.name = name
        self.container_id = container_id
        self.unstartable = unstartable


def apply(step: Step, runtime: Runtime, announce: Callable[[str], None]) -> None:
    """Do one step; ``announce`` hears in one sentence what may take long.

    Raises:
        StepFailure: with the runtime's words.
    """
    match step:
        case Remove(container_id, name):
            _remove(container_id, name, runtime, announce)
        case Create(wanted):
            announce(f"container {wanted.name} is created")
            _start(_create(step, runtime), wanted.name, runtime)
        case Start(container_id, name):
            _start(container_id, name, runtime)
        case Unpause(container_id, name):
            _attempt(f"container {name} cannot be unpaused", name, lambda: runtime.unpause(container_id))


def _remove(container_id: str, name: str, runtime: Runtime, announce: Callable[[str], None]) -> None:
    """A stop that fails or does not end in time is no reason to keep the container (AGT-5, P6)."""
    try:
        current = runtime.inspect(container_id)
        if current is not None and current.state is State.PAUSED:
            runtime.unpause(container_id)
        if current is not None and current.state in (State.RUNNING, State.PAUSED):
            announce(f"container {name} is stopped, for at most {STOP_SECONDS} s")
            runtime.stop(container_id, STOP_SECONDS)
    except RuntimeFailure:
        announce(f"container {name} did not stop and is removed by force")
    try:
        runtime.remove(container_id)
    except RuntimeFailure:
        # One whose monitor was killed is only marked as stopped by the first attempt; the second removes it.
        _attempt(f"container {name} cannot be removed", name, lambda: runtime.remove(container_id))


def _create(step: Create, runtime: Runtime) -> str:
    name = step.wanted.name
    try:
        return runtime.create(step.wanted.spec)
    except RuntimeFailure as error:
        raise StepFailure(f"container {name} cannot be created: {error}", name=name) from error


def _start(container_id: str, name: str, runtime: Runtime) -> None:
    try:
        runtime.start(container_id)
    except RuntimeFailure as error:
        raise StepFailure(
            f"container {name} cannot be started: {error}", name=name, container_id=container_id, unstartable=True
        ) from error


def _attempt(complaint: str, name: str, call: Callable[[], None]) -> None:
    try:
        call()
    except RuntimeFailure as error:
        raise StepFailure(f"{complaint}: {error}", name=name) from error
