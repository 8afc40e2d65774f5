"""Devices: how they are, what they have, and what an operator may do with one. None is added by hand: they enrol."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import (
    AllValuesCheckboxFilter,
    BooleanRadioFilter,
    ChoicesCheckboxFilter,
    RelatedCheckboxFilter,
)
from unfold.decorators import display

from agent.wire import names
from devices import services
from devices.admin import looks, panels
from devices.admin.forms import LabelsForm, MembershipForm
from devices.models import Device, DeviceGroup
from devices.selectors import devices_overview
from fleet.core.adminkit import show
from fleet.core.adminkit.pages import Operation, ServiceAdmin
from fleet.core.adminkit.records import records_of

CHANGE, DELETE = "devices.change_device", "devices.delete_device"


def _set_canary(wanted: bool) -> Any:
    def run(device: Device, user: Any, _: dict[str, Any]) -> str:
        services.device_set_canary(device=device, canary=wanted, actor=user)
        return f"{device.name} is {'now' if wanted else 'no longer'} a canary."

    return run


def _set_labels(device: Device, user: Any, cleaned: dict[str, Any]) -> str:
    services.device_set_labels(device=device, labels=cleaned["labels"], actor=user)
    return f"The operator's labels of {device.name} were set."


def _set_groups(device: Device, user: Any, cleaned: dict[str, Any]) -> str:
    wanted, has = set(cleaned["groups"]), set(device.groups.all())
    with transaction.atomic():
        for group in sorted(wanted ^ has, key=str):
            members = set(group.devices.values_list("name", flat=True))
            services.group_set_devices(group=group, devices=members ^ {device.name}, actor=user)
    return f"{device.name} is in {show.plural(len(wanted), 'group')}."


def _reset(device: Device, user: Any, _: dict[str, Any]) -> str:
    services.device_reset_credential(device=device, actor=user)
    return f"The credential of {device.name} is revoked. Run fleet-agent enroll on the device to let it in again."


def _forget(device: Device, user: Any, _: dict[str, Any]) -> str:
    services.device_forget(device=device, actor=user)
    return f"{device.name} is forgotten."


def _forget_consequences(device: Device) -> list[str]:
    return [
        "Its credential is revoked at once; it cannot come back by itself, only with a new enrolment token.",
        "What runs on it keeps running: its containers are no longer looked after from here.",
        *panels.forget_warnings(device),
    ]


panels.add_operations(
    Operation(
        name="mark-canary",
        label="Mark as canary",
        icon="star",
        permission=CHANGE,
        question="Make {} a canary?",
        run=_set_canary(True),
        consequences=lambda _: [
            "Rollouts that begin from now on go to it first, and to other devices only when it has converged.",
            "Rollouts that run already have frozen their canaries and stay as they are.",
        ],
        offered=lambda device: not device.canary,
        bulk=True,
    ),
    Operation(
        name="unmark-canary",
        label="Unmark canary",
        icon="star_half",
        permission=CHANGE,
        question="Make {} an ordinary device?",
        run=_set_canary(False),
        consequences=lambda _: ["Rollouts that run already have frozen it as a canary and still wait for it."],
        offered=lambda device: device.canary,
        bulk=True,
    ),
    Operation(
        name="labels",
        label="Edit labels",
        icon="label",
        permission=CHANGE,
        question="Operator's labels of {}",
        run=_set_labels,
        consequences=lambda _: [
            "Running rollouts keep the target set that they have frozen; only new revisions see the change."
        ],
        form=LabelsForm,
    ),
    Operation(
        name="groups",
        label="Edit groups",
        icon="workspaces",
        permission="devices.change_devicegroup",
        question="Groups of {}",
        run=_set_groups,
        consequences=lambda _: ["A group decides which deployments may reach the device."],
        form=MembershipForm,
    ),
    Operation(
        name="reset-credential",
        label="Reset credential",
        icon="lock_reset",
        permission=CHANGE,
        question="Reset the credential of {}?",
        run=_reset,
        consequences=lambda _: [
            "Its present credential ends at once: until it is enrolled again, it is not heard and gets nothing.",
            "The next enrolment under this name (with a valid token) is taken as the same device, once.",
            "Its containers keep running meanwhile.",
        ],
    ),
    Operation(
        name="forget",
        label="Forget",
        icon="delete_forever",
        permission=DELETE,
        question="Forget {} for good?",
        run=_forget,
        consequences=_forget_consequences,
        danger=True,
        bulk=True,
    ),
)


@admin.register(Device)
class DeviceAdmin(ServiceAdmin):
    operations = panels.operations
    detail_template = "fleet/device.html"
    list_display = ("device", "connectivity", "label_chips", "group_names", "versions", "problem_count")
    list_display_links = ("device",)
    list_filter = (
        ("heartbeat__connectivity", ChoicesCheckboxFilter),
        ("canary", BooleanRadioFilter),
        ("groups", RelatedCheckboxFilter),
        ("architecture", AllValuesCheckboxFilter),
        ("agent_version", AllValuesCheckboxFilter),
    )
    list_filter_submit = True
    ordering = ("name",)
    search_fields = ("name", "os", "agent_version", "labels")
    search_help_text = "Search by device id, label, operating system or version"
    empty_title = "No device has enrolled yet"
    empty_text = "An administrator creates an enrolment token; its page has the command to run on the device."
    empty_template = "fleet/no_devices.html"

    def get_queryset(self, request: HttpRequest) -> Any:
        return devices_overview().order_by(*self.get_ordering(request))

    @display(description="Device", ordering="name")
    def device(self, device: Device) -> SafeString:
        return format_html("{} {}", device.name, looks.canary()) if device.canary else format_html("{}", device.name)

    @display(description="Connectivity", ordering="heartbeat__connectivity")
    def connectivity(self, device: Device) -> SafeString:
        return looks.device_connectivity(device)

    @display(description="Labels")
    def label_chips(self, device: Device) -> SafeString:
        return looks.own_labels(device, limit=4)

    @display(description="Groups")
    def group_names(self, device: Device) -> SafeString:
        return show.names(group.name for group in device.groups.all())

    @display(description="Versions", ordering="agent_version")
    def versions(self, device: Device) -> SafeString:
        if not device.agent_version:
            return show.DASH
        return format_html(
            '<span class="hf-small hf-nowrap">agent {}<br>Podman {}, {}</span>',
            device.agent_version,
            device.podman_version or "unknown",
            device.architecture or "unknown architecture",
        )

    @display(description="Problems")
    def problem_count(self, device: Device) -> SafeString:
        if not device.problems:
            return show.DASH
        return show.badge(str(len(device.problems)), show.Look("bad", "report"))

    def detail_context(self, request: HttpRequest, obj: Device) -> dict[str, Any]:
        return {
            "device": obj,
            "heartbeat": getattr(obj, "heartbeat", None),
            "connectivity": looks.device_connectivity(obj),
            "canary_badge": show.badge("canary", looks.CANARY) if obj.canary else "",
            "facts": _facts(obj),
            "labels": _labels(obj),
            "groups": DeviceGroup.objects.filter(devices=obj),
            "panels": panels.shown(request, obj),
            **records_of(request, "Device", obj.name),
        }


def _facts(device: Device) -> list[tuple[str, str]]:
    return [
        ("Architecture", device.architecture),
        ("Operating system", device.os),
        ("Kernel", device.kernel),
        ("Boot id", device.boot_id),
        ("Agent", device.agent_version),
        ("Updater", device.updater_version),
        ("Podman", device.podman_version),
        ("Capabilities", ", ".join(device.capabilities)),
    ]


def _labels(device: Device) -> list[dict[str, str]]:
    """Every label that selectors see, who set it, and what the device said if that was overruled."""
    rows = []
    for key, value in sorted(device.labels.items()):
        reported = device.reported_labels.get(key)
        if key in names.RESERVED_LABELS:
            source = "control plane"
        elif key in device.operator_labels:
            source = "operator"
        else:
            source = "device"
        overruled = reported if source != "device" and reported not in (None, value) else ""
        rows.append({"key": key, "value": value, "source": source, "overruled": overruled})
    return rows
