"""Deployments: the list, the live rollout view, and what an operator may do with one."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, CheckboxFilter
from unfold.decorators import display
from unfold.enums import ActionVariant

from fleet.core.adminkit import show
from fleet.core.adminkit.editor import EditViews
from fleet.core.adminkit.live import LiveViews
from fleet.core.adminkit.pages import Operation
from fleet.core.adminkit.records import records_of
from fleet.core.labels import explain
from rollouts import selectors, services
from rollouts.admin import live, looks, manifest
from rollouts.admin.forms import GiveUpForm
from rollouts.admin.logs import READ, LogViews
from rollouts.models import DELETING, Deployment, Phase
from rollouts.selectors.matching import spec_of

UNDER_WAY = (Phase.PENDING, Phase.CANARY, Phase.RELEASING, Phase.FAILED)


def _retarget(deployment: Deployment, user: Any, _: dict[str, Any]) -> str:
    revision = services.deployment_retarget(deployment=deployment, actor=user)
    return f"{deployment} has the new generation {revision.generation}, which freezes its targets anew."


def _end(deployment: Deployment, user: Any, _: dict[str, Any]) -> str:
    services.rollout_end(deployment=deployment, actor=user)
    return f"The rollout of {deployment} is ended: nothing more is released."


def _delete(deployment: Deployment, user: Any, _: dict[str, Any]) -> str:
    services.deployment_delete(deployment=deployment, actor=user)
    return f"{deployment} is being deleted: its devices remove it and prove it."


def _give_up(deployment: Deployment, user: Any, asked: dict[str, Any]) -> str:
    services.deployment_forget_device(deployment=deployment, device=asked["device"], actor=user)
    return f"The deletion of {deployment} waits for {asked['device']} no more."


OPERATIONS = (
    Operation(
        name="retarget",
        label="Retarget",
        icon="my_location",
        permission="rollouts.retarget_deployment",
        question="Retarget {}?",
        run=_retarget,
        consequences=lambda _: [
            "A new revision of the same spec freezes a new target set, latecomers included.",
            "Devices that already run it restart nothing; canaries go first again.",
            "What was not released of the present revision never will be.",
        ],
        offered=lambda deployment: deployment.phase != DELETING,
    ),
    Operation(
        name="end",
        label="End rollout",
        icon="block",
        permission="rollouts.end_deployment",
        question="End the rollout of {} for good?",
        run=_end,
        consequences=lambda deployment: [
            f"{show.plural(max(0, deployment.matched - deployment.released), 'device')} of "
            f"{deployment.matched} were not released and never will be by this revision.",
            "What runs keeps running. This is no pause: only a new revision or a retarget goes on.",
        ],
        offered=lambda deployment: deployment.phase in UNDER_WAY,
    ),
    Operation(
        name="remove",
        label="Delete",
        icon="delete",
        permission="rollouts.delete_deployment",
        question="Delete {}?",
        run=_delete,
        consequences=lambda deployment: [
            "Its containers are removed on every device that may have them "
            f"({show.plural(deployment.released, 'device')} of the present revision).",
            "It stays in Deleting until each of them has proven that; an offline device is waited for by name.",
        ],
        offered=lambda deployment: deployment.phase != DELETING,
        danger=True,
    ),
    Operation(
        name="forget-device",
        label="Give up a device",
        icon="link_off",
        permission="rollouts.forget_device_deployment",
        question="Delete {} without the proof of a device?",
        run=_give_up,
        consequences=lambda _: [
            "For a device that will not come back. Nobody knows whether its containers still run there.",
            "Should it come back, it removes them by itself. The deployment ends when no other device is waited for.",
        ],
        offered=lambda deployment: deployment.phase == DELETING,
        form=GiveUpForm,
        danger=True,
    ),
)


class PhaseFilter(CheckboxFilter):
    title = "phase"
    parameter_name = "phase"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in looks.PHASES if name != Phase.SUPERSEDED]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Deployment]) -> QuerySet[Deployment]:
        wanted = self.value()
        return queryset.filter(phase__in=wanted) if wanted else queryset


@admin.register(Deployment)
class DeploymentAdmin(LogViews, EditViews, LiveViews):
    operations = OPERATIONS
    detail_template = "fleet/rollout.html"
    live_template = "fleet/rollout_live.html"
    example = manifest.EXAMPLE
    list_display = ("deployment", "phase_badge", "progress", "sentence", "generation", "since")
    list_display_links = ("deployment",)
    list_filter = (PhaseFilter, ("namespace", AllValuesCheckboxFilter))
    list_filter_submit = True
    search_fields = ("namespace", "name")
    search_help_text = "Search by name or namespace"
    ordering = ("namespace", "name")
    empty_title = "Nothing is deployed yet"
    empty_text = "A deployment says which containers shall run on which devices. Paste its manifest here, or run "
    empty_template = "fleet/no_deployments.html"
    add_label = "Apply a manifest"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Deployment]:
        ordering = self.get_ordering(request)
        return selectors.deployment_list().order_by(*ordering)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Deployment], search_term: str
    ) -> tuple[QuerySet[Deployment], bool]:
        namespace, slash, name = search_term.partition("/")
        if slash:
            return queryset.filter(Q(namespace=namespace) & Q(name__startswith=name)), False
        return super().get_search_results(request, queryset, search_term)

    @display(description="Deployment", ordering="name")
    def deployment(self, deployment: Deployment) -> SafeString:
        return format_html('<span class="hf-mute">{}/</span>{}', deployment.namespace, deployment.name)

    @display(description="Phase")
    def phase_badge(self, deployment: Any) -> SafeString:
        return looks.phase(deployment.phase)

    @display(description="Progress")
    def progress(self, deployment: Any) -> SafeString:
        words = [f"{deployment.converged} of {deployment.matched} converged"]
        words += [f"{deployment.failed} failed"] if deployment.failed else []
        words += [f"{deployment.offline} offline"] if deployment.offline else []
        return format_html(
            '<span class="hf-bar-cell">{}<span class="hf-small hf-mute">{}</span></span>',
            looks.progress_bar(deployment),
            ", ".join(words),
        )

    @display(description="Waits for")
    def sentence(self, deployment: Any) -> SafeString:
        return format_html('<span class="hf-wrap">{}</span>', deployment.message) if deployment.message else show.DASH

    @display(description="So far")
    def since(self, deployment: Any) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', show.lasting(deployment.phase_since))

    def manifest_of(self, obj: Any) -> str:
        return manifest.text(obj, selectors.current_revision(obj))

    def may_edit(self, request: HttpRequest, obj: Any) -> bool:
        return super().may_edit(request, obj) and obj.phase != DELETING

    def buttons(self, request: HttpRequest, obj: Any) -> list[dict[str, Any]]:
        logs = {
            "title": "Logs",
            "icon": "article",
            "variant": ActionVariant.DEFAULT,
            "attrs": {"data-operation": "logs"},
            "path": self.link("logs", obj.pk),
        }
        buttons = super().buttons(request, obj)
        place = 1 if self.may_edit(request, obj) else 0
        return [*buttons[:place], *[logs] * self._may_read_logs(request, obj), *buttons[place:]]

    def _may_read_logs(self, request: HttpRequest, obj: Any) -> bool:
        return request.user.has_perm(READ) and obj.released > 0 and obj.phase != DELETING

    def detail_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        shown = super().detail_context(request, obj)
        spec = spec_of(shown["revision"])
        return {
            **shown,
            "spec": spec,
            "selector": explain(spec.targetSelector),
            "manifest": manifest.text(obj, shown["revision"]),
        }

    def changing(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        may_retarget = request.user.has_perm("rollouts.retarget_deployment") and obj.phase != DELETING
        return {
            **live.context(request, obj),
            "logs_url": self.link("logs", obj.pk) if self._may_read_logs(request, obj) else "",
            "retarget_url": self.link("retarget", obj.pk) if may_retarget else "",
            **records_of(request, "Deployment", str(obj)),
        }
