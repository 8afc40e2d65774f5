"""Forms of the devices' pages; they read text, services judge it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import Group
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from devices.models import Device, DeviceGroup
from fleet.core import clock

DEFAULT_DAYS, LONGEST_DAYS = 7, 365


class LabelsField(forms.CharField):
    """Labels as people type them: one ``key=value`` a line."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("help_text", "One key=value a line. They win over what the device reports.")
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 6, "spellcheck": "false"})
        super().__init__(required=False, widget=widget, **kwargs)

    def to_python(self, value: Any) -> Any:
        labels: dict[str, str] = {}
        for number, line in enumerate((value or "").splitlines(), start=1):
            text = line.strip()
            if not text:
                continue
            key, equals, label = (part.strip() for part in text.partition("="))
            if not key or not equals:
                raise forms.ValidationError(f"Line {number} is {text!r}; allowed: key=value")
            if key in labels:
                raise forms.ValidationError(f"Line {number} sets {key!r} a second time; allowed: each key once")
            labels[key] = label
        return labels


def as_lines(labels: dict[str, str]) -> str:
    """The text of which :class:`LabelsField` makes these labels."""
    return "\n".join(f"{key}={value}" for key, value in sorted(labels.items()))


class LabelsForm(forms.Form):
    labels = LabelsField(label="Operator's labels")

    def __init__(self, device: Device, data: Any = None) -> None:
        super().__init__(data, initial={"labels": as_lines(device.operator_labels)})


def _group_choices() -> forms.ModelMultipleChoiceField:
    return forms.ModelMultipleChoiceField(
        DeviceGroup.objects.all(), required=False, widget=UnfoldAdminCheckboxSelectMultipleWidget()
    )


class MembershipForm(forms.Form):
    groups = _group_choices()

    def __init__(self, device: Device, data: Any = None) -> None:
        super().__init__(data, initial={"groups": device.groups.all()})


class DevicesForm(forms.Form):
    devices = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 14, "spellcheck": "false"}),
        help_text="One device id a line. Who is not listed leaves the group.",
    )

    def __init__(self, group: DeviceGroup, data: Any = None) -> None:
        names = group.devices.order_by("name").values_list("name", flat=True) if data is None else ()
        super().__init__(data, initial={"devices": "\n".join(names)})

    def clean_devices(self) -> list[str]:
        return sorted({line.strip() for line in self.cleaned_data["devices"].splitlines() if line.strip()})


class DeployersForm(forms.Form):
    deployers = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        help_text="Roles whose members may name this group in allowedGroups.",
    )

    def __init__(self, group: DeviceGroup, data: Any = None) -> None:
        super().__init__(data, initial={"deployers": group.deployers.all()})


class GroupForm(forms.Form):
    name = forms.CharField(
        max_length=253,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "lab", "autocomplete": "off"}),
        help_text="What manifests name in allowedGroups: lower-case letters, digits, dashes and dots.",
    )


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "line 4, December", "autocomplete": "off"}),
        help_text="To find it again in the list and in the audit.",
    )
    days = forms.IntegerField(
        label="Days until it expires",
        initial=DEFAULT_DAYS,
        min_value=1,
        max_value=LONGEST_DAYS,
        widget=UnfoldAdminIntegerFieldWidget(),
    )
    use_limit = forms.IntegerField(
        label="Devices it may let in",
        initial=1,
        min_value=1,
        max_value=100_000,
        widget=UnfoldAdminIntegerFieldWidget(),
    )
    labels = LabelsField(help_text="Optional: operator's labels given to each device, one key=value a line.")
    groups = _group_choices()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if "days" in cleaned:
            cleaned["expires_at"] = clock.now() + timedelta(days=cleaned["days"])
        return cleaned
