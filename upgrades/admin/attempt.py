"""Attempts: what was asked of devices' updaters, and each attempt's journal as a timeline. No journal is edited."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, ChoicesCheckboxFilter, RangeDateTimeFilter
from unfold.decorators import display

from fleet.core.adminkit import show
from fleet.core.adminkit.live import LiveViews
from fleet.core.adminkit.pages import Operation
from upgrades import policy, services
from upgrades.admin import looks, origins
from upgrades.models import NEEDS_ROOT, Attempt, State

#: A longer journal is shown from its end.
LINES_SHOWN = 500


def _give_up(attempt: Attempt, user: Any, _: dict[str, Any]) -> str:
    services.attempt_give_up(attempt=attempt, actor=user)
    return f"{attempt} is waited for no more."


def _what_giving_up_does(attempt: Attempt) -> list[str]:
    heartbeat = getattr(attempt.device, "heartbeat", None)
    heard = show.relative(heartbeat.last_seen) if heartbeat and heartbeat.last_seen else "never"
    return [
        f"The device was last heard: {heard}. For a device that will not say any more how it went.",
        "The attempt counts as failed: of a canary, that ends its run for good.",
        "Nothing is interrupted on the device: an upgrade that goes on there goes on.",
        "Another attempt may be offered to it from now on. Should it come back, what it says is still written down.",
    ]


OPERATIONS = (
    Operation(
        name="give-up",
        label="Give up",
        icon="link_off",
        permission="upgrades.give_up_attempt",
        question="Wait no more for {}?",
        run=_give_up,
        consequences=_what_giving_up_does,
        offered=lambda attempt: policy.may_be_given_up(attempt.state),
        danger=True,
    ),
)


@admin.register(Attempt)
class AttemptAdmin(LiveViews):
    operations = OPERATIONS
    detail_template = "fleet/attempt.html"
    live_template = "fleet/attempt_parts.html"
    list_display = ("on_device", "state_badge", "step_dots", "sentence", "what_for", "times")
    list_display_links = ("on_device",)
    list_filter = (
        ("state", ChoicesCheckboxFilter),
        ("executor", AllValuesCheckboxFilter),
        ("offered_at", RangeDateTimeFilter),
    )
    list_filter_submit = True
    search_fields = ("device_name", "title", "executor", "state", "message")
    search_help_text = "Search by device, task, state or message"
    empty_title = "No device was asked to upgrade yet"
    empty_text = (
        "A task run, or an agent that is wanted, makes an attempt for a device; what its updater writes is kept here."
    )

    @display(description="Device", ordering="device_name")
    def on_device(self, attempt: Attempt) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', attempt.device_name)

    @display(description="State", ordering="state")
    def state_badge(self, attempt: Attempt) -> SafeString:
        return looks.state(attempt)

    @display(description="Step")
    def step_dots(self, attempt: Attempt) -> SafeString | str:
        return looks.stepper(attempt)

    @display(description="What it says")
    def sentence(self, attempt: Attempt) -> SafeString:
        return format_html('<span class="hf-wrap">{}</span>', attempt.message) if attempt.message else show.DASH

    @display(description="For", ordering="title")
    def what_for(self, attempt: Attempt) -> SafeString:
        return format_html('{}<br><span class="hf-small hf-mute hf-mono">{}</span>', attempt.title, attempt.executor)

    @display(description="Offered", ordering="offered_at")
    def times(self, attempt: Attempt) -> SafeString:
        ended = format_html("ended {}", show.moment(attempt.ended_at)) if attempt.ended_at else ""
        return format_html(
            '<span class="hf-nowrap">{}</span><br><span class="hf-small hf-mute hf-nowrap">{}</span>',
            show.moment(attempt.offered_at),
            ended,
        )

    def detail_context(self, request: HttpRequest, obj: Attempt) -> dict[str, Any]:
        return {
            **super().detail_context(request, obj),
            "origin": origins.links([obj.pk]).get(obj.pk, ""),
            "target": looks.target(obj.agent_upgrade) if obj.agent_upgrade else [],
        }

    def changing(self, request: HttpRequest, obj: Attempt) -> dict[str, Any]:
        newest = list(obj.journal.order_by("-number")[: LINES_SHOWN + 1])
        told = policy.passages(reversed(newest[:LINES_SHOWN]), is_over=bool(obj.ended_at))
        return {
            "attempt": obj,
            "state": looks.state(obj),
            "words": State(obj.state).label,
            "steps": looks.sequence(obj),
            "repair": obj.state in NEEDS_ROOT,
            "passages": [(each, show.badge(each.outcome, looks.OUTCOMES[each.outcome])) for each in told],
            "cut": len(newest) > LINES_SHOWN,
            "lines_shown": LINES_SHOWN,
        }
