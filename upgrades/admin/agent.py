"""The agent that a device shall run: on the device's page with its buttons, and a list of all that are wanted."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, ChoicesCheckboxFilter
from unfold.decorators import display

from devices.admin import panels
from devices.models import Device
from fleet.core.adminkit import show
from fleet.core.adminkit.manifests import difference
from fleet.core.adminkit.pages import Operation, ServiceAdmin
from fleet.core.adminkit.previews import Preview, add_previewer
from fleet.core.door import Admitted
from fleet.core.manifest_text import dump
from upgrades import policy, services
from upgrades.admin import looks
from upgrades.admin.agent_forms import AgentForm
from upgrades.models import BEGUN, DesiredAgent, Standing
from upgrades.selectors import may_be_retried

CHANGE = "upgrades.change_desiredagent"
DEVICE = "admin:devices_device_change"


def wanted(device: Device) -> DesiredAgent | None:
    """What the device shall run; None when it keeps what it has."""
    return getattr(device, "desired_agent", None)


def _may_be_given_up(device: Device) -> bool:
    row = wanted(device)
    return row is not None and row.attempt is not None and policy.may_be_given_up(row.attempt.state)


def _set(device: Device, user: Any, cleaned: dict[str, Any]) -> str:
    services.device_apply(manifest=cleaned["manifest"], actor=user)
    return f"{device.name} shall run agent {cleaned['version']}."


def _retry(device: Device, user: Any, _: dict[str, Any]) -> str:
    services.agent_upgrade_retry(device=device, actor=user)
    return f"{device.name} is asked once more."


def _keep(device: Device, user: Any, _: dict[str, Any]) -> str:
    services.agent_upgrade_set(device=device, target=None, actor=user)
    return f"{device.name} keeps the agent that it has."


def _give_up(device: Device, user: Any, _: dict[str, Any]) -> str:
    services.agent_upgrade_give_up(device=device, actor=user)
    return f"The agent upgrade of {device.name} is waited for no more."


OPERATIONS = (
    Operation(
        name="set-agent",
        label="Set agent",
        icon="deployed_code_update",
        permission=CHANGE,
        question="The agent that {} shall run",
        run=_set,
        consequences=lambda _: [
            "Containers go on running: only the agent is replaced.",
            "If the new agent does not prove itself, the one that runs now is started again.",
            "An upgrade that has not begun is withdrawn; one that has begun goes on, and this one waits for it.",
        ],
        form=AgentForm,
        in_card=True,
    ),
    Operation(
        name="retry-agent",
        label="Retry agent upgrade",
        icon="replay",
        permission=CHANGE,
        question="Ask {} once more to upgrade its agent?",
        run=_retry,
        consequences=lambda _: ["The same archive is fetched and tried again; what failed may fail again."],
        offered=lambda device: (row := wanted(device)) is not None and may_be_retried(row),
        bulk=True,
        in_card=True,
    ),
    Operation(
        name="keep-agent",
        label="Keep agent",
        icon="undo",
        permission=CHANGE,
        question="Let {} keep the agent that it has?",
        run=_keep,
        consequences=lambda _: ["An upgrade that has not begun is withdrawn; one that has begun goes on."],
        offered=lambda device: wanted(device) is not None,
        bulk=True,
        in_card=True,
    ),
    Operation(
        name="give-up-agent",
        label="Give up agent upgrade",
        icon="link_off",
        permission="upgrades.give_up_attempt",
        question="Wait no more for the agent upgrade of {}?",
        run=_give_up,
        consequences=lambda _: [
            "For a device that is not heard any more. The upgrade counts as failed; nothing is interrupted there.",
            "Another attempt may be offered from now on. Should it come back, what it says is still written down.",
        ],
        offered=_may_be_given_up,
        danger=True,
        in_card=True,
    ),
)
panels.add_operations(*OPERATIONS)


@panels.add_panel
def agent(request: HttpRequest, device: Device) -> SafeString:
    """What it runs, what it shall run, and where that stands."""
    if not request.user.has_perm("upgrades.view_desiredagent"):
        return mark_safe("")
    row = wanted(device)
    context = {
        "device": device,
        "row": row,
        "state": looks.standing(row) if row else "",
        "target": looks.target(row.spec) if row else [],
        "buttons": [
            (each, reverse(f"admin:devices_device_{each.name}", args=[device.pk]))
            for each in OPERATIONS
            if request.user.has_perm(each.permission) and each.offered(device)
        ],
        "needs_setup": row is not None and row.state == Standing.UNABLE,
    }
    return mark_safe(render_to_string("fleet/device_agent.html", context, request=request))  # noqa: S308


@panels.add_forget_warning
def at_work(device: Device) -> list[str]:
    """What forgetting a device does that is at work on its agent."""
    row = wanted(device)
    if row is None or row.attempt is None or row.attempt.state not in BEGUN:
        return []
    return ["It is at work on an agent upgrade; that goes on, and nobody will hear how it ends."]


@admin.register(DesiredAgent)
class DesiredAgentAdmin(ServiceAdmin):
    """All wanted agents; each leads to its device's page, where its buttons are."""

    list_display = ("on_device", "state_badge", "reported", "version", "sentence", "since")
    list_display_links = ("on_device",)
    list_filter = (
        ("state", ChoicesCheckboxFilter),
        ("version", AllValuesCheckboxFilter),
        ("device__agent_version", AllValuesCheckboxFilter),
    )
    list_filter_submit = True
    list_select_related = ("device",)
    search_fields = ("device__name", "version", "message")
    search_help_text = "Search by device, version or message"
    empty_title = "No device was asked to run another agent yet"
    empty_text = "Set the agent on a device's page, or apply a manifest of the kind Device."

    @display(description="Device", ordering="device__name")
    def on_device(self, row: DesiredAgent) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', row.device.name)

    @display(description="State", ordering="state")
    def state_badge(self, row: DesiredAgent) -> SafeString:
        return looks.standing(row)

    @display(description="Runs", ordering="device__agent_version")
    def reported(self, row: DesiredAgent) -> SafeString | str:
        return row.device.agent_version or show.DASH

    @display(description="Where it stands")
    def sentence(self, row: DesiredAgent) -> SafeString:
        return format_html('<span class="hf-wrap">{}</span>', row.message)

    @display(description="Since", ordering="state_since")
    def since(self, row: DesiredAgent) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', show.moment(row.state_since))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.found(request, object_id)
        return HttpResponseRedirect(reverse(DEVICE, args=[row.device_id]))


def _preview(admitted: Admitted, user: Any) -> Preview:
    done = services.device_apply(manifest=admitted, actor=user, dry_run=True)
    name = admitted.full_name
    result = Preview(name, done.outcome, done.generation, matched=1)
    known = DesiredAgent.objects.filter(device_id=done.pk).first()
    before = dump("Device", {"name": name}, {"agentUpgrade": known.spec} if known else {})
    result.difference = difference(before, dump("Device", {"name": name}, admitted.spec))
    return result


add_previewer("Device", _preview)
