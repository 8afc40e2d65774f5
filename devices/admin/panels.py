"""What apps above add to a device's pages, so that nothing here has to know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.http import HttpRequest
from django.utils.safestring import SafeString

from devices.models import Device
from fleet.core.adminkit.pages import Operation

#: HTML of a card on the device's page; empty when this user may not see it.
Panel = Callable[[HttpRequest, Device], SafeString]
#: Sentences on what forgetting the device would do.
Warning_ = Callable[[Device], Sequence[str]]

#: What an operator may do with one device, in the order of the buttons.
operations: list[Operation] = []
_panels: list[Panel] = []
_warnings: list[Warning_] = []


def add_panel(panel: Panel) -> Panel:
    """Show ``panel`` on every device's page (a decorator)."""
    _panels.append(panel)
    return panel


def add_operations(*added: Operation) -> None:
    """Offer these on every device's page."""
    operations.extend(added)


def add_forget_warning(warning: Warning_) -> Warning_:
    """Show these sentences before a device is forgotten (a decorator)."""
    _warnings.append(warning)
    return warning


def shown(request: HttpRequest, device: Device) -> list[SafeString]:
    """All panels that have something to show."""
    return [html for panel in _panels if (html := panel(request, device))]


def forget_warnings(device: Device) -> list[str]:
    """All sentences, in the order of their registration."""
    return [sentence for warning in _warnings for sentence in warning(device)]
