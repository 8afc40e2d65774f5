"""Task runs: the list, a page per run with its targets, and what an operator may do with one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, ChoicesCheckboxFilter
from unfold.decorators import display

from fleet.core import clock
from fleet.core.adminkit import show
from fleet.core.adminkit.editor import EditorViews
from fleet.core.adminkit.live import LiveViews
from fleet.core.adminkit.pages import Operation
from fleet.core.adminkit.records import records_of
from fleet.core.labels import explain
from tasks import selectors, services
from tasks.admin import live, looks
from tasks.models import LIVE_PHASES, Kind, TaskRun
from upgrades.admin import origins

EXAMPLE = """\
apiVersion: fleet.nationtech.io/v1alpha1
kind: TaskRun
metadata:
  name: upgrade-lab
spec:
  allowedGroups: [lab]
  targetSelector:
    matchLabels:
      role: analyzer
  # After these seconds nothing new begins; what has begun is never interrupted.
  deadlineSeconds: 21600
  systemUpgradeV1: {}
"""


def _end(run: TaskRun, user: Any, _: dict[str, Any]) -> str:
    services.taskrun_end(run=run, actor=user)
    return f"{run} is ended: nothing more is released."


def _delete(run: TaskRun, user: Any, _: dict[str, Any]) -> str:
    services.taskrun_delete(run=run, actor=user)
    return f"{run} is deleted; it stays here as history, and its name is free."


def _recreate(run: TaskRun, user: Any, _: dict[str, Any]) -> str:
    made = services.taskrun_recreate(run=run, actor=user)
    address = looks.address(made.kind, made.pk)
    return format_html(
        '<a class="hf-link" href="{}">{}</a> was made for the devices that failed in {}.', address, made, run
    )


OPERATIONS = (
    Operation(
        name="recreate",
        label="Repeat for failed devices",
        icon="replay",
        permission="tasks.add_taskrun",
        question="Repeat {} for the devices that failed?",
        run=_recreate,
        consequences=lambda run: [
            f"A new run with the same task and deadline selects {show.plural(run.failed, 'device')} by name.",
            "Canaries among them go first again.",
        ],
        offered=lambda run: run.failed > 0,
    ),
    Operation(
        name="end",
        label="End",
        icon="block",
        permission="tasks.end_taskrun",
        question="End {} for good?",
        run=_end,
        consequences=lambda _: ["Nothing more is released.", "A device that has begun finishes; no upgrade is undone."],
        offered=lambda run: run.phase in LIVE_PHASES,
    ),
    Operation(
        name="remove",
        label="Delete",
        icon="delete",
        permission="tasks.delete_taskrun",
        question="Delete {}?",
        run=_delete,
        consequences=lambda _: ["Nothing more is released.", "The run stays in the history, and its name is free."],
        offered=lambda run: run.deleted_at is None,
        danger=True,
    ),
)


@admin.register(TaskRun)
class TaskRunAdmin(EditorViews, LiveViews):
    operations = OPERATIONS
    detail_template = "fleet/taskrun.html"
    live_template = "fleet/taskrun_live.html"
    example = EXAMPLE
    list_display = ("run", "phase_badge", "progress", "sentence", "deadline", "created")
    list_display_links = ("run",)
    list_filter = (
        ("phase", ChoicesCheckboxFilter),
        ("namespace", AllValuesCheckboxFilter),
        ("executor", AllValuesCheckboxFilter),
    )
    list_filter_submit = True
    search_fields = ("namespace", "name", "targets__device_name")
    search_help_text = "Search by name, namespace or device"
    empty_title = "No task was run yet"
    empty_text = (
        "A task run upgrades the operating system of a set of devices once, canaries first. "
        "Write its manifest here, or run"
    )
    empty_template = "fleet/no_taskruns.html"
    add_label = "New task run"

    kind = Kind.TASK_RUN

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskRun]:
        return super().get_queryset(request).filter(kind=self.kind)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[TaskRun], search_term: str
    ) -> tuple[QuerySet[TaskRun], bool]:
        namespace, slash, name = search_term.partition("/")
        if slash:
            return queryset.filter(namespace=namespace, name__startswith=name), False
        return super().get_search_results(request, queryset, search_term)

    @display(description="Task run", ordering="name")
    def run(self, run: TaskRun) -> SafeString:
        gone = format_html(' <span class="hf-small hf-mute">{}</span>', "deleted" if run.deleted_at else "")
        return format_html('<span class="hf-mute">{}/</span>{}{}', run.namespace, run.name, gone)

    @display(description="Phase")
    def phase_badge(self, run: TaskRun) -> SafeString:
        return looks.phase(run.phase)

    @display(description="Progress")
    def progress(self, run: TaskRun) -> SafeString:
        return looks.progress(run)

    @display(description="Where it stands")
    def sentence(self, run: TaskRun) -> SafeString:
        return format_html('<span class="hf-wrap">{}</span>', run.message) if run.message else show.DASH

    @display(description="Deadline", ordering="deadline_at")
    def deadline(self, run: TaskRun) -> SafeString:
        passed = clock.now() >= run.deadline_at
        return format_html(
            '<span class="hf-nowrap{}">{}{}</span>',
            "" if run.phase in LIVE_PHASES and not passed else " hf-mute",
            "passed " if passed else "",
            show.moment(run.deadline_at),
        )

    @display(description="Created", ordering="created_at")
    def created(self, run: TaskRun) -> SafeString:
        return format_html(
            '<span class="hf-nowrap">{}</span><br><span class="hf-small hf-mute">{}</span>',
            show.moment(run.created_at),
            run.created_by,
        )

    def detail_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        spec = selectors.spec_of(obj)
        shown = {"selector": explain(spec.targetSelector), "groups": spec.allowedGroups}
        return {**super().detail_context(request, obj), **shown}

    def changing(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        return {**live.context(request, obj), **records_of(request, obj.kind, str(obj))}


@origins.add_origin
def _runs_of(attempt_ids: Collection[int]) -> dict[int, str]:
    """An attempt leads to its run."""
    runs = selectors.runs_of_attempts(attempt_ids)
    return {attempt: looks.address(*run) for attempt, run in runs.items()}
