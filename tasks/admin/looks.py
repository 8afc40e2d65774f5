"""How runs and their targets appear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from fleet.core.adminkit import show
from fleet.core.adminkit.show import Look
from tasks.models import Kind, Phase, TaskRun, TaskSchedule

PHASES: dict[str, Look] = {
    Phase.PENDING: Look("warn", "hourglass_top"),
    Phase.CANARY: Look("info", "star"),
    Phase.RUNNING: Look("info", "send"),
    Phase.COMPLETED: Look("good", "check_circle"),
    Phase.FAILED: Look("bad", "error"),
    Phase.CANCELLED: Look("mute", "cancel"),
}
#: By the word of :func:`tasks.selectors.shown_state`; in the order of the bar and of the legend under it.
TARGETS: dict[str, Look] = {
    "Completed": Look("good", "check_circle"),
    "Completed (late)": Look("warn", "check_circle"),
    "Failed": Look("bad", "error"),
    "Running": Look("info", "sync"),
    "Released": Look("info", "send"),
    "Held": Look("mute", "front_hand"),
    "NotStarted": Look("mute", "cancel"),
}
#: Segments of the bar: (words, tone, states in it).
SEGMENTS = (
    ("completed", "good", ("Completed",)),
    ("completed late", "warn", ("Completed (late)",)),
    ("failed", "bad", ("Failed",)),
    ("at work", "info", ("Running", "Released")),
    ("held back", "mute", ("Held",)),
    ("not started", "mute", ("NotStarted",)),
)


def address(kind: str, pk: int) -> str:
    """Of a run's page."""
    name = "agentrelease" if kind == Kind.AGENT_RELEASE else "taskrun"
    return reverse(f"admin:tasks_{name}_change", args=[pk])


def phase(name: str) -> SafeString:
    """The badge of a phase."""
    return show.badge(name, PHASES[name])


def target(word: str) -> SafeString:
    """The badge of a target's state."""
    return show.badge(word, TARGETS[word])


def progress(run: TaskRun) -> SafeString:
    """A stacked bar of a run's own counts with words: no query."""
    busy = max(0, run.released - run.completed - run.failed)
    held = max(0, run.matched - run.completed - run.failed - run.not_started - busy)
    parts = [
        (run.completed, "good", "completed"),
        (run.failed, "bad", "failed"),
        (busy, "info", "released, not completed yet"),
        (held + run.not_started, "mute", "not released"),
    ]
    words = f"{run.completed} of {run.matched} completed" if run.matched else "no device yet"
    words += f", {run.failed} failed" if run.failed else ""
    return format_html(
        '<span class="hf-bar-cell">{}<span class="hf-small hf-mute">{}</span></span>',
        show.bar(parts, total=run.matched),
        words,
    )


def segments(counted: Mapping[str, int]) -> dict[str, Any]:
    """A stacked bar of counts by state, with its total and its legend."""
    parts = [(sum(counted.get(state, 0) for state in states), tone, words) for words, tone, states in SEGMENTS]
    total = sum(counted.values())
    return {"bar": show.bar(parts, total=total), "total": total, "legend": [each for each in parts if each[0]]}


def schedule(found: TaskSchedule) -> SafeString:
    """The badge of a schedule."""
    if found.suspended:
        return show.badge("suspended", Look("mute", "pause"))
    return show.badge("active", Look("good", "event_repeat"))
