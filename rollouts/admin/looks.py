"""How phases, targets and observations appear."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from agent.wire.messages import DeploymentState
from fleet.core.adminkit import show
from fleet.core.adminkit.show import Look
from fleet.targeting.models import TargetState
from rollouts.models import DELETING, LogState, Phase

PHASES: dict[str, Look] = {
    Phase.PENDING: Look("warn", "hourglass_top"),
    Phase.CANARY: Look("info", "star"),
    Phase.RELEASING: Look("info", "send"),
    Phase.CONVERGED: Look("good", "check_circle"),
    Phase.FAILED: Look("bad", "error"),
    Phase.SUPERSEDED: Look("mute", "history"),
    Phase.CANCELLED: Look("mute", "cancel"),
    DELETING: Look("warn", "delete"),
}
TARGETS: dict[str, Look] = {
    TargetState.HELD: Look("mute", "front_hand"),
    TargetState.RELEASED: Look("info", "sync"),
    TargetState.CONVERGED: Look("good", "check_circle"),
    TargetState.FAILED: Look("bad", "error"),
    TargetState.ENDED: Look("mute", "cancel"),
}
OBSERVED: dict[str, Look] = {
    DeploymentState.PROGRESSING: Look("info", "sync"),
    DeploymentState.CONVERGED: Look("good", "check_circle"),
    DeploymentState.FAILED: Look("bad", "error"),
    DeploymentState.REMOVED: Look("mute", "delete"),
}
LOGS: dict[str, Look] = {
    LogState.WAITING: Look("info", "sync"),
    LogState.ANSWERED: Look("good", "check_circle"),
    LogState.FAILED: Look("bad", "error"),
    LogState.EXPIRED: Look("warn", "timer_off"),
}
DIGEST_CHARS = 12


def phase(name: str) -> SafeString:
    """The badge of a phase."""
    return show.badge(name, PHASES[name])


def target(state: str) -> SafeString:
    """The badge of a target's state."""
    return show.badge("never released" if state == TargetState.ENDED else state, TARGETS[state])


def observed(state: str) -> SafeString:
    """The badge of what a device says."""
    return show.badge(state, OBSERVED[state])


def log_state(state: str) -> SafeString:
    """The badge of a request for a log."""
    return show.badge(state, LOGS[state])


def progress_bar(counted: Any) -> SafeString:
    """A stacked bar from anything that has a revision's counts."""
    busy = max(0, counted.released - counted.converged - counted.failed)
    held = max(0, counted.matched - counted.converged - counted.failed - busy)
    parts = [
        (counted.converged, "good", "converged"),
        (counted.failed, "bad", "failed"),
        (busy, "info", "released, not converged yet"),
        (held, "mute", "not released"),
    ]
    return show.bar(parts, total=counted.matched)


def images(digests: dict[str, str] | None) -> SafeString:
    """Running images: container and the beginning of its digest; the whole one is the title."""
    if not digests:
        return show.DASH
    rows = ((name, digest, _short(digest)) for name, digest in sorted(digests.items()))
    return format_html(
        '<span class="hf-small">{}</span>',
        format_html_join(
            mark_safe("<br>"), '<span class="hf-nowrap" title="{1}">{0} <span class="hf-mono">{2}</span></span>', rows
        ),
    )


def _short(digest: str) -> str:
    text = digest.rpartition(":")[2]
    return text[:DIGEST_CHARS] if len(text) > DIGEST_CHARS else digest
