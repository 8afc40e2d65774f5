"""Groups of the database group source: who is in them, and who may deploy to them (DEP-7)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from unfold.decorators import display

from devices import services
from devices.admin import looks
from devices.admin.forms import DeployersForm, DevicesForm, GroupForm
from devices.models import DeviceGroup
from devices.services.deployers import group_set_deployers
from fleet.core.adminkit import show
from fleet.core.adminkit.pages import Operation, ServiceAdmin, sentences
from fleet.core.adminkit.records import records_of
from fleet.core.errors import FleetError

CHANGE = "devices.change_devicegroup"
MEMBERS_SHOWN = 200


def _set_devices(group: DeviceGroup, user: Any, cleaned: dict[str, Any]) -> str:
    services.group_set_devices(group=group, devices=cleaned["devices"], actor=user)
    return f"{group.name} has {show.plural(len(cleaned['devices']), 'device')}."


def _set_deployers(group: DeviceGroup, user: Any, cleaned: dict[str, Any]) -> str:
    group_set_deployers(group=group, deployers=cleaned["deployers"], actor=user)
    return f"{show.plural(len(cleaned['deployers']), 'role')} may deploy to {group.name}."


def _delete(group: DeviceGroup, user: Any, _: dict[str, Any]) -> str:
    name = group.name
    services.group_delete(group=group, actor=user)
    return f"The group {name} is gone."


@admin.register(DeviceGroup)
class DeviceGroupAdmin(ServiceAdmin):
    operations = (
        Operation(
            name="devices",
            label="Edit devices",
            icon="developer_board",
            permission=CHANGE,
            question="Devices of the group {}",
            run=_set_devices,
            consequences=lambda _: ["Rollouts that run keep their frozen set; only new revisions see the change."],
            form=DevicesForm,
        ),
        Operation(
            name="deployers",
            label="Edit deployers",
            icon="shield_person",
            permission=CHANGE,
            question="Who may deploy to {}?",
            run=_set_deployers,
            form=DeployersForm,
        ),
        Operation(
            name="remove",
            label="Delete",
            icon="delete",
            permission="devices.delete_devicegroup",
            question="Delete the group {}?",
            run=_delete,
            consequences=lambda group: [
                f"{show.plural(group.devices.count(), 'device leaves', 'devices leave')} it.",
                "New revisions that allow only this group match nothing; running rollouts keep their frozen set.",
            ],
            danger=True,
        ),
    )
    detail_template = "fleet/group.html"
    list_display = ("name", "size", "deployer_names")
    search_fields = ("name",)
    search_help_text = "Search by name"
    empty_title = "No group yet"
    empty_text = "A manifest names in allowedGroups the groups that it may reach; without a group it reaches nothing."
    add_label = "Create a group"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(members=Count("devices")).prefetch_related("deployers")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("devices.add_devicegroup")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = GroupForm(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._form(request, form)
        try:
            group = services.group_create(name=form.cleaned_data["name"], actor=request.user)
        except FleetError as error:
            return self._form(request, form, error)
        messages.success(request, f"The group {group.name} is made. Now say which devices are in it.")
        return HttpResponseRedirect(self.link("change", group.pk))

    def _form(self, request: HttpRequest, form: forms.Form, error: FleetError | None = None) -> HttpResponse:
        context = self.page_context(
            request,
            form=form,
            title="Create a group",
            submit="Create",
            cancel=self.link("changelist"),
            errors=sentences(error) if error else [],
        )
        return TemplateResponse(request, "fleet/create.html", context, status=error.status if error else HTTPStatus.OK)

    def detail_context(self, request: HttpRequest, obj: DeviceGroup) -> dict[str, Any]:
        members = obj.devices.select_related("heartbeat").order_by("name")[:MEMBERS_SHOWN]
        return {
            "group": obj,
            "members": [
                {"device": each, "connectivity": looks.device_connectivity(each), "labels": looks.own_labels(each)}
                for each in members
            ],
            "size": obj.devices.count(),
            "deployers": obj.deployers.order_by("name"),
            **records_of(request, "DeviceGroup", obj.name),
        }

    @display(description="Devices", ordering="members")
    def size(self, group: Any) -> int:
        return int(group.members)

    @display(description="Deployers")
    def deployer_names(self, group: DeviceGroup) -> SafeString:
        return show.names(sorted(each.name for each in group.deployers.all()))
