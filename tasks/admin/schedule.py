"""Schedules: when each makes its next run, what came of the last time, and what an operator may do with one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, BooleanRadioFilter
from unfold.decorators import display

from fleet.core.adminkit import show
from fleet.core.adminkit.editor import EditViews
from fleet.core.adminkit.live import LiveViews
from fleet.core.adminkit.pages import Operation
from fleet.core.adminkit.records import records_of
from fleet.core.labels import explain
from tasks import selectors, services
from tasks.admin import looks
from tasks.models import TaskSchedule

RUNS_SHOWN = 20
EXAMPLE = """\
apiVersion: fleet.nationtech.io/v1alpha1
kind: TaskSchedule
metadata:
  name: upgrade-lab-weekly
spec:
  # minute, hour, day of the month, month, day of the week (0 is Sunday), by the clocks of the time zone
  schedule: "30 2 * * 0"
  timeZone: Europe/Zurich
  template:
    allowedGroups: [lab]
    targetSelector:
      matchLabels:
        role: analyzer
    deadlineSeconds: 21600
    systemUpgradeV1: {}
"""


def _suspend(wanted: bool) -> Any:
    def run(schedule: TaskSchedule, user: Any, _: dict[str, Any]) -> str:
        services.schedule_suspend(schedule=schedule, suspended=wanted, actor=user)
        return f"{schedule} is suspended." if wanted else f"{schedule} goes on with its next time."

    return run


def _run_now(schedule: TaskSchedule, user: Any, _: dict[str, Any]) -> str:
    made = services.schedule_run_now(schedule=schedule, actor=user)
    address = reverse("admin:tasks_taskrun_change", args=[made.pk])
    return format_html('<a class="hf-link" href="{}">{}</a> was made.', address, made)


def _delete(schedule: TaskSchedule, user: Any, _: dict[str, Any]) -> str:
    name = str(schedule)
    services.schedule_delete(schedule=schedule, actor=user)
    return f"{name} is deleted; its runs stay."


OPERATIONS = (
    Operation(
        name="run-now",
        label="Run now",
        icon="play_arrow",
        permission="tasks.add_taskrun",
        question="Make a run of {} now?",
        run=_run_now,
        consequences=lambda schedule: [
            "Its devices are matched now, canaries go first, and the deadline counts from now.",
            "The next time stays as it is; it is skipped while this run is under way.",
        ],
    ),
    Operation(
        name="suspend",
        label="Suspend",
        icon="pause",
        permission="tasks.change_taskschedule",
        question="Suspend {}?",
        run=_suspend(True),
        consequences=lambda _: ["No more runs are made until it is resumed.", "A run that is under way goes on."],
        offered=lambda schedule: not schedule.suspended,
    ),
    Operation(
        name="resume",
        label="Resume",
        icon="resume",
        permission="tasks.change_taskschedule",
        question="Resume {}?",
        run=_suspend(False),
        consequences=lambda _: ["It goes on with the next time from now; what was missed is not made up."],
        offered=lambda schedule: schedule.suspended,
    ),
    Operation(
        name="remove",
        label="Delete",
        icon="delete",
        permission="tasks.delete_taskschedule",
        question="Delete {}?",
        run=_delete,
        consequences=lambda _: ["No more runs are made.", "Those that were made stay; one that is under way goes on."],
        danger=True,
    ),
)


@admin.register(TaskSchedule)
class TaskScheduleAdmin(EditViews, LiveViews):
    operations = OPERATIONS
    detail_template = "fleet/schedule.html"
    live_template = "fleet/schedule_live.html"
    example = EXAMPLE
    list_display = ("schedule", "state_badge", "times", "next_time", "last_time")
    list_display_links = ("schedule",)
    list_filter = (("suspended", BooleanRadioFilter), ("namespace", AllValuesCheckboxFilter))
    list_filter_submit = True
    list_select_related = ("last_run",)
    search_fields = ("namespace", "name")
    search_help_text = "Search by name or namespace"
    empty_title = "Nothing is scheduled yet"
    empty_text = (
        "A schedule makes task runs at fixed times, such as every Sunday night. Write its manifest here, or run"
    )
    empty_template = "fleet/no_schedules.html"
    add_label = "New schedule"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[TaskSchedule], search_term: str
    ) -> tuple[QuerySet[TaskSchedule], bool]:
        namespace, slash, name = search_term.partition("/")
        if slash:
            return queryset.filter(namespace=namespace, name__startswith=name), False
        return super().get_search_results(request, queryset, search_term)

    @display(description="Schedule", ordering="name")
    def schedule(self, schedule: TaskSchedule) -> SafeString:
        return format_html('<span class="hf-mute">{}/</span>{}', schedule.namespace, schedule.name)

    @display(description="State")
    def state_badge(self, schedule: TaskSchedule) -> SafeString:
        return looks.schedule(schedule)

    @display(description="Times")
    def times(self, schedule: TaskSchedule) -> SafeString:
        spec = selectors.schedule_spec(schedule)
        return format_html(
            '<span class="hf-mono hf-nowrap">{}</span><br><span class="hf-small hf-mute">{}</span>',
            spec.schedule,
            spec.timeZone,
        )

    @display(description="Next run", ordering="next_at")
    def next_time(self, schedule: TaskSchedule) -> SafeString:
        return next_time(schedule)

    @display(description="What came of the last time", ordering="last_at")
    def last_time(self, schedule: TaskSchedule) -> SafeString:
        phase = looks.phase(schedule.last_run.phase) if schedule.last_run else ""
        words = schedule.message or "No time has come yet"
        return format_html('{} <span class="hf-wrap">{}</span>', phase, words)

    def manifest_of(self, obj: Any) -> str:
        return selectors.schedule_text(obj)

    def detail_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        spec = selectors.schedule_spec(obj)
        return {
            **super().detail_context(request, obj),
            "spec": spec,
            "deadline": timedelta(seconds=spec.template.deadlineSeconds),
            "selector": explain(spec.template.targetSelector),
            "manifest": self.manifest_of(obj),
        }

    def changing(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        return {
            "schedule": obj,
            "state": looks.schedule(obj),
            "next": next_time(obj),
            "runs": [
                {
                    "run": run,
                    "phase": looks.phase(run.phase),
                    "progress": looks.progress(run),
                }
                for run in obj.runs.all()[:RUNS_SHOWN]
            ],
            **records_of(request, "TaskSchedule", str(obj)),
        }


def next_time(schedule: TaskSchedule) -> SafeString:
    """How long until then, and the wall clock of the schedule's time zone."""
    if schedule.next_at is None:
        return show.DASH
    wall = schedule.next_at.astimezone(ZoneInfo(selectors.schedule_spec(schedule).timeZone))
    return format_html(
        '<span class="hf-nowrap">{}</span><br><span class="hf-small hf-mute hf-nowrap">{}</span>',
        show.moment(schedule.next_at),
        f"{wall:%a %Y-%m-%d %H:%M %Z}",
    )
