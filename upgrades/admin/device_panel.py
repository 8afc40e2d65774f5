"""What attempts add to a device's page: its updater, what is missing there, and its last attempts."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from agent.wire.messages import APT_FULL_UPGRADE_V1
from devices.admin import panels
from devices.models import Device
from upgrades.admin import looks, origins
from upgrades.models import NEEDS_ROOT, Attempt

SHOWN = 5


@panels.add_panel
def upgrades(request: HttpRequest, device: Device) -> SafeString:
    """The newest attempts, and whether the device could begin another one."""
    if not request.user.has_perm("upgrades.view_attempt"):
        return mark_safe("")
    found = list(Attempt.objects.filter(device=device)[:SHOWN])
    links = origins.links([attempt.pk for attempt in found])
    context: dict[str, Any] = {
        "device": device,
        "updater": device.updater_version,
        "capable": APT_FULL_UPGRADE_V1 in device.capabilities,
        "capability": APT_FULL_UPGRADE_V1,
        "repair": next((attempt for attempt in found if attempt.state in NEEDS_ROOT), None),
        "rows": [
            {
                "attempt": attempt,
                "state": looks.state(attempt),
                "step": looks.stepper(attempt),
                "origin": links.get(attempt.pk, ""),
            }
            for attempt in found
        ],
    }
    return mark_safe(render_to_string("fleet/device_upgrades.html", context, request=request))  # noqa: S308
