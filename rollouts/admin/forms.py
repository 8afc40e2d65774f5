"""What an operation asks for besides a confirmation."""

from __future__ import annotations

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from agent.wire.messages import MAX_LOG_LINES
from devices.models import Device
from fleet.targeting import wording
from rollouts import selectors
from rollouts.models import Deployment
from rollouts.selectors.logs import LogSources
from rollouts.services.logs import DEFAULT_LINES


class DeviceField(forms.CharField):
    """A device by its name: there may be more of them than a list could show."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=63, widget=UnfoldAdminTextInputWidget(attrs={"spellcheck": "false"}), **kwargs)

    def clean(self, value: Any) -> Device:
        name = super().clean(value)
        device = Device.objects.filter(name=name).first()
        if device is None:
            raise forms.ValidationError(f"There is no device {name!r}.")
        return device


class GiveUpForm(forms.Form):
    """A device that a deletion waits for."""

    device = DeviceField()

    def __init__(self, deployment: Deployment, data: Any = None) -> None:
        waits = selectors.devices_to_remove_it(deployment)
        super().__init__(data, initial={"device": waits[0]} if len(waits) == 1 else None)
        self.fields["device"].help_text = f"The deletion waits for {wording.names(waits) or 'no device'}."


class LogForm(forms.Form):
    """Whose log, of which container, how much of it."""

    device = DeviceField()
    container = forms.ChoiceField(widget=UnfoldAdminSelectWidget())
    lines = forms.IntegerField(
        min_value=1, max_value=MAX_LOG_LINES, initial=DEFAULT_LINES, widget=UnfoldAdminIntegerFieldWidget()
    )

    def __init__(self, sources: LogSources, device: str = "", container: str = "", data: Any = None) -> None:
        self.devices = sources.devices
        only = sources.devices[0] if len(sources.devices) == 1 else ""
        super().__init__(data, initial={"device": device or only, "container": container})
        self.fields["device"].widget.attrs["list"] = "devices"
        self.fields["container"].choices = [(name, name) for name in sources.containers]
