"""Task runs: the list, a page per run with its targets and their journals, and what an operator may do with one."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, ChoicesCheckboxFilter
from unfold.decorators import display

from devices.selectors import match
from fleet.core.adminkit import show
from fleet.core.adminkit.pages import Operation, ServiceAdmin
from fleet.core.adminkit.previews import Preview, add_previewer
from fleet.core.adminkit.records import records_of
from fleet.core.adminkit.show import Look
from fleet.core.door import Admitted
from fleet.core.labels import explain
from tasks import selectors, services
from tasks.models import LIVE_PHASES, Phase, TaskRun
from upgrades.models import JournalEntry

PER_PAGE = 50
PHASES: dict[str, Look] = {
    Phase.PENDING: Look("warn", "hourglass_top"),
    Phase.CANARY: Look("info", "star"),
    Phase.RUNNING: Look("info", "send"),
    Phase.COMPLETED: Look("good", "check_circle"),
    Phase.FAILED: Look("bad", "error"),
    Phase.CANCELLED: Look("mute", "cancel"),
}
TARGETS: dict[str, Look] = {
    "Held": Look("mute", "front_hand"),
    "Released": Look("info", "send"),
    "Running": Look("info", "sync"),
    "Completed": Look("good", "check_circle"),
    "Completed (late)": Look("warn", "check_circle"),
    "Failed": Look("bad", "error"),
    "NotStarted": Look("mute", "cancel"),
}


def _end(run: TaskRun, user: Any, _: dict[str, Any]) -> str:
    services.taskrun_end(run=run, actor=user)
    return f"{run} is ended: nothing more is released."


def _delete(run: TaskRun, user: Any, _: dict[str, Any]) -> str:
    services.taskrun_delete(run=run, actor=user)
    return f"{run} is deleted; it stays here as history, and its name is free."


def _recreate(run: TaskRun, user: Any, _: dict[str, Any]) -> str:
    return f"{services.taskrun_recreate(run=run, actor=user)} was made for the devices that failed in {run}."


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
class TaskRunAdmin(ServiceAdmin):
    operations = OPERATIONS
    detail_template = "fleet/taskrun.html"
    list_display = ("run", "phase_badge", "progress", "sentence", "deadline", "created")
    list_display_links = ("run",)
    list_filter = (("phase", ChoicesCheckboxFilter), ("namespace", AllValuesCheckboxFilter))
    list_filter_submit = True
    search_fields = ("namespace", "name", "targets__device_name")
    search_help_text = "Search by name, namespace or device"
    empty_title = "No task was run yet"
    empty_text = "A task run upgrades the operating system of a set of devices once. Apply a manifest of kind TaskRun."

    @display(description="Task run", ordering="name")
    def run(self, run: TaskRun) -> SafeString:
        gone = format_html(' <span class="hf-small hf-mute">{}</span>', "deleted" if run.deleted_at else "")
        return format_html('<span class="hf-mute">{}/</span>{}{}', run.namespace, run.name, gone)

    @display(description="Phase")
    def phase_badge(self, run: TaskRun) -> SafeString:
        return show.badge(run.phase, PHASES[run.phase])

    @display(description="Progress")
    def progress(self, run: TaskRun) -> SafeString:
        words = f"{run.completed} of {run.matched} completed" + (f", {run.failed} failed" if run.failed else "")
        return format_html(
            '<span class="hf-bar-cell">{}<span class="hf-small hf-mute">{}</span></span>', progress_bar(run), words
        )

    @display(description="Waits for, or how it ended")
    def sentence(self, run: TaskRun) -> SafeString:
        return format_html('<span class="hf-wrap">{}</span>', run.message) if run.message else show.DASH

    @display(description="Deadline", ordering="deadline_at")
    def deadline(self, run: TaskRun) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', show.moment(run.deadline_at))

    @display(description="Created", ordering="created_at")
    def created(self, run: TaskRun) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', show.moment(run.created_at))

    def detail_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        spec = selectors.spec_of(obj)
        find = request.GET.get("find", "").replace("\x00", "")
        page = Paginator(selectors.targets_of(obj).filter(device_name__contains=find), PER_PAGE).get_page(
            request.GET.get("page")
        )
        return {
            "run": obj,
            "phase": show.badge(obj.phase, PHASES[obj.phase]),
            "bar": progress_bar(obj),
            "selector": explain(spec.targetSelector),
            "groups": spec.allowedGroups,
            "page": page,
            "find": find,
            "rows": [{**row, "badge": show.badge(row["state"], TARGETS[row["state"]])} for row in _rows(page)],
            "history": obj.history.all(),
            **records_of(request, "TaskRun", str(obj)),
        }


def _rows(page: Any) -> list[dict[str, Any]]:
    """Targets with their whole journals: one query for all of the page."""
    targets = list(page)
    journals: dict[int, list[JournalEntry]] = {}
    attempts = [target.attempt_id for target in targets if target.attempt_id]
    for entry in JournalEntry.objects.filter(attempt__in=attempts).order_by("attempt_id", "number"):
        journals.setdefault(entry.attempt_id, []).append(entry)
    return [selectors.target_row(target, journals.get(target.attempt_id or 0, [])) for target in targets]


def progress_bar(run: TaskRun) -> SafeString:
    """A stacked bar of a run's counts."""
    busy = max(0, run.matched - run.completed - run.failed - run.not_started)
    parts = [
        (run.completed, "good", "completed"),
        (run.failed, "bad", "failed"),
        (busy, "info", "not decided yet"),
        (run.not_started, "mute", "not started"),
    ]
    return show.bar(parts, total=run.matched)


def _preview(admitted: Admitted, user: Any) -> Preview:
    done = services.taskrun_apply(manifest=admitted, actor=user, dry_run=True)
    metadata, spec = admitted.manifest.metadata, admitted.manifest.spec
    found = match(spec.targetSelector, spec.allowedGroups)
    return Preview(
        f"{metadata.namespace}/{metadata.name}",
        done.outcome,
        done.generation,
        matched=len(found.chosen),
        canaries=sorted(each.device.name for each in found.chosen if each.device.canary),
        obstacle=found.obstacle.message if found.obstacle else "",
    )


add_previewer("TaskRun", _preview)
