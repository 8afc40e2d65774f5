"""Attempts: what was asked of devices' updaters, and each attempt's journal as a timeline. Nothing here is edited."""

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
from upgrades import policy
from upgrades.admin import looks, origins
from upgrades.models import Attempt, State

#: A longer journal is shown from its end.
LINES_SHOWN = 500


@admin.register(Attempt)
class AttemptAdmin(LiveViews):
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
    empty_text = "A task run makes an attempt for each of its devices; what the device's updater writes is kept here."

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
        return {**super().detail_context(request, obj), "origin": origins.links([obj.pk]).get(obj.pk, "")}

    def changing(self, request: HttpRequest, obj: Attempt) -> dict[str, Any]:
        newest = list(obj.journal.order_by("-number")[: LINES_SHOWN + 1])
        told = policy.passages(reversed(newest[:LINES_SHOWN]), is_over=bool(obj.ended_at))
        return {
            "attempt": obj,
            "state": looks.state(obj),
            "words": State(obj.state).label,
            "steps": looks.sequence(obj),
            "repair": obj.state == State.REPAIR_REQUIRED,
            "passages": [(each, show.badge(each.outcome, looks.OUTCOMES[each.outcome])) for each in told],
            "cut": len(newest) > LINES_SHOWN,
            "lines_shown": LINES_SHOWN,
        }
