"""How a device's states appear."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agent.wire import names
from devices.models import Connectivity, Device
from fleet.core.adminkit import show
from fleet.core.adminkit.show import Look

CONNECTIVITY = {
    Connectivity.ONLINE: Look("good", "wifi"),
    Connectivity.STALE: Look("warn", "schedule"),
    Connectivity.OFFLINE: Look("bad", "wifi_off"),
    Connectivity.NEVER: Look("mute", "hourglass_empty"),
}
CANARY = Look("warn", "star")


def connectivity(state: str) -> SafeString:
    """The badge of a connectivity."""
    known = Connectivity(state)
    return show.badge(known.label, CONNECTIVITY[known])


def device_connectivity(device: Device) -> SafeString:
    """The badge with its age."""
    heartbeat = getattr(device, "heartbeat", None)
    if heartbeat is None:
        return connectivity(Connectivity.NEVER)
    return format_html(
        '{}<br><span class="hf-small hf-mute hf-nowrap">{}</span>',
        connectivity(heartbeat.connectivity),
        show.lasting(heartbeat.connectivity_since),
    )


def own_labels(device: Device, *, limit: int | None = None) -> SafeString:
    """Its labels without those that say what its name and its star say already."""
    own = {key: value for key, value in device.labels.items() if key not in names.RESERVED_LABELS}
    return show.chips(own, limit=limit)


def canary() -> SafeString:
    """The star of a canary."""
    return show.STAR
