"""How attempts and their journals appear."""

from __future__ import annotations

from typing import Any

from django.utils.safestring import SafeString

from fleet.core.adminkit import show, steps
from fleet.core.adminkit.show import Look
from fleet.core.adminkit.steps import Step
from upgrades import policy
from upgrades.models import Attempt, DesiredAgent, Standing, State

STATES: dict[str, Look] = {
    State.OFFERED: Look("info", "send"),
    State.WITHDRAWN: Look("mute", "undo"),
    State.ACCEPTED: Look("info", "sync"),
    State.RUNNING: Look("info", "sync"),
    State.GIVEN_UP: Look("warn", "link_off"),
    State.REPAIR_REQUIRED: Look("bad", "build"),
    State.ROLLBACK_FAILED: Look("bad", "build"),
    State.COMPLETED: Look("good", "check_circle"),
    State.FAILED: Look("bad", "error"),
    State.REFUSED: Look("bad", "front_hand"),
}
STANDINGS: dict[str, Look] = {
    Standing.CURRENT: Look("good", "check_circle"),
    Standing.WAITING: Look("mute", "hourglass_empty"),
    Standing.UNABLE: Look("warn", "construction"),
    Standing.UNDER_WAY: Look("info", "sync"),
    Standing.FAILED: Look("bad", "error"),
}
OUTCOMES: dict[str, Look] = {
    policy.DONE: Look("good", "check"),
    policy.UNDER_WAY: Look("info", "sync"),
    policy.STEP_FAILED: Look("bad", "close"),
    policy.BROKEN_OFF: Look("warn", "power_off"),
}
#: How the step that was reached ended, by the attempt's state.
_ENDS = {
    State.COMPLETED: "done",
    State.FAILED: "failed",
    State.REFUSED: "failed",
    State.REPAIR_REQUIRED: "failed",
    State.ROLLBACK_FAILED: "failed",
    State.GIVEN_UP: "ended",
}


def state(attempt: Attempt) -> SafeString:
    """The badge of an attempt's state."""
    return show.badge(attempt.state, STATES[attempt.state], title=State(attempt.state).label)


def standing(row: DesiredAgent) -> SafeString:
    """The badge of where a wanted agent stands."""
    return show.badge(row.state, STANDINGS[row.state], title=Standing(row.state).label)


def target(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """An agent upgrade's fields (UPG-1) as people call them."""
    return [
        ("Version", spec["version"]),
        ("Architecture", spec["architecture"]),
        ("Archive", spec["url"]),
        ("Largest size", f"{spec['maxSize']} bytes"),
        ("SHA-256", spec["sha256"]),
    ]


def sequence(attempt: Attempt) -> list[Step]:
    """The fixed sequence and where the attempt stands in it; empty when it has not begun or names another step."""
    position = reached(attempt)
    if position is None:
        return []
    end = _ENDS.get(State(attempt.state), "")
    return [
        steps.step(name, index - position, end=end, note=attempt.state if end in ("failed", "ended") else "")
        for index, name in enumerate(_steps(attempt))
    ]


def reached(attempt: Attempt) -> int | None:
    """The place of the attempt's step in the sequence; a completed one has reached the last."""
    names = _steps(attempt)
    if not names:
        return None
    if attempt.state == State.COMPLETED:
        return len(names) - 1
    if not policy.has_begun(attempt.state) or attempt.step not in names:
        return None
    return names.index(attempt.step)


def _steps(attempt: Attempt) -> tuple[str, ...]:
    return policy.SEQUENCES.get(attempt.executor, ())


def stepper(attempt: Attempt | None) -> SafeString | str:
    """The sequence in a table's cell."""
    if attempt is None:
        return show.DASH
    position = reached(attempt)
    if position is None:
        return attempt.step or show.DASH
    return steps.dots(sequence(attempt), position)
