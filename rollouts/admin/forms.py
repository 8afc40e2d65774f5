"""What an operation asks for besides a confirmation."""

from __future__ import annotations

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from devices.models import Device
from fleet.targeting import wording
from rollouts import selectors
from rollouts.models import Deployment


class GiveUpForm(forms.Form):
    """A device by its name: a deletion may wait for more of them than a list could show."""

    device = forms.CharField(max_length=63, widget=UnfoldAdminTextInputWidget(attrs={"spellcheck": "false"}))

    def __init__(self, deployment: Deployment, data: Any = None) -> None:
        waits = selectors.devices_to_remove_it(deployment)
        super().__init__(data, initial={"device": waits[0]} if len(waits) == 1 else None)
        self.fields["device"].help_text = f"The deletion waits for {wording.names(waits) or 'no device'}."

    def clean_device(self) -> Device:
        """The device of that name."""
        name = self.cleaned_data["device"].strip()
        device = Device.objects.filter(name=name).first()
        if device is None:
            raise forms.ValidationError(f"There is no device {name!r}.")
        return device
