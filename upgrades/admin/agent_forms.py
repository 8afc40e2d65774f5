"""The form of a wanted agent; it reads text, the door judges it."""

from __future__ import annotations

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from agent.wire import canonical
from agent.wire.manifest import API_VERSION, MAX_ARTIFACT_BYTES
from devices.models import Device
from fleet.core import door
from fleet.core.door import ManifestInvalid

FIELD = "spec.agentUpgrade."
ARCHITECTURES = ("amd64", "arm64")


def _text(placeholder: str) -> UnfoldAdminTextInputWidget:
    return UnfoldAdminTextInputWidget(attrs={"placeholder": placeholder, "autocomplete": "off", "spellcheck": "false"})


class AgentForm(forms.Form):
    """``cleaned_data["manifest"]`` is the device's manifest, admitted."""

    version = forms.CharField(
        widget=_text("1.4.0"), help_text="Any version may follow any other: what is wanted counts, not what is newer."
    )
    architecture = forms.ChoiceField(choices=[(each, each) for each in ARCHITECTURES], widget=UnfoldAdminSelectWidget())
    url = forms.CharField(
        label="Address of the archive",
        widget=_text("https://releases.example.com/agent-1.4.0-amd64.tar.gz"),
        help_text="https://, or oci:// where the updater has OciArtifactV1.",
    )
    maxSize = forms.IntegerField(  # noqa: N815  (the manifest's name)
        label="Largest size in bytes",
        min_value=1,
        max_value=MAX_ARTIFACT_BYTES,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="The device takes no byte more.",
    )
    sha256 = forms.CharField(label="SHA-256 of the archive", widget=_text("64 hexadecimal digits"))

    def __init__(self, device: Device, data: Any = None) -> None:
        known = getattr(device, "desired_agent", None)
        super().__init__(data, initial=known.spec if known else {"architecture": device.architecture})
        self._device = device

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        document = {
            "apiVersion": API_VERSION,
            "kind": "Device",
            "metadata": {"name": self._device.name},
            "spec": {"agentUpgrade": {name: cleaned[name] for name in self.fields}},
        }
        try:
            (cleaned["manifest"],) = door.admit(canonical.encode(document))
        except ManifestInvalid as refused:
            for fault in refused.faults:
                name = fault.path.removeprefix(FIELD)
                self.add_error(name if name in self.fields else None, fault.message)
        return cleaned
