"""Forms of the secrets' pages. A value that was typed goes to the service and into no page again."""

from __future__ import annotations

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget
from unfold.widgets import UnfoldAdminTextInputWidget as TextInput

from agent.wire.manifest import DEFAULT_NAMESPACE
from vault.models import Secret
from vault.policy import PASSWORD, USERNAME

_PLAIN = {"autocomplete": "off", "spellcheck": "false"}


class MaskedTextarea(UnfoldAdminTextareaWidget):
    """Several lines that are shown as dots, and come back empty whatever was typed."""

    def __init__(self) -> None:
        super().__init__(attrs={**_PLAIN, "rows": 4, "class": "hf-masked"})

    def format_value(self, value: Any) -> str:
        return ""


class ValueField(forms.CharField):
    """A value as it was typed; a browser's line breaks become those of the values that programs read."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(strip=False, widget=MaskedTextarea(), **kwargs)
        self.validators = []  # the service says in its own words what is not allowed

    def to_python(self, value: Any) -> str:
        return str(value or "").replace("\r\n", "\n")


class KeyForm(forms.Form):
    """One key with its value."""

    key = forms.CharField(
        max_length=63,
        widget=TextInput(attrs={**_PLAIN, "placeholder": "password"}),
        help_text="What manifests name beside the secret; a key that exists gets the new value.",
    )
    value = ValueField(help_text="Never shown again. Several lines are fine.")

    def __init__(self, secret: Secret | None = None, data: Any = None) -> None:
        super().__init__(data)

    @property
    def values(self) -> dict[str, str]:
        """By key; once the form is valid."""
        return {self.cleaned_data["key"]: self.cleaned_data["value"]}


class KeyChoiceForm(forms.Form):
    key = forms.ChoiceField(widget=UnfoldAdminRadioSelectWidget())

    def __init__(self, secret: Secret, data: Any = None) -> None:
        super().__init__(data)
        self.fields["key"].choices = [(entry.key, entry.key) for entry in secret.entries.defer("sealed")]


class RegistryField(forms.CharField):
    def __init__(self, **kwargs: Any) -> None:
        widget = TextInput(attrs={**_PLAIN, "placeholder": "registry.example.com:5000"})
        super().__init__(max_length=255, widget=widget, **kwargs)


class RegistryForm(forms.Form):
    registry = RegistryField(required=False, help_text="host or host:port as images begin with it; empty for none.")

    def __init__(self, secret: Secret, data: Any = None) -> None:
        super().__init__(data, initial={"registry": secret.registry})


class _NewForm(forms.Form):
    namespace = forms.CharField(
        max_length=63,
        initial=DEFAULT_NAMESPACE,
        widget=TextInput(attrs=_PLAIN),
        help_text="Deployments refer to secrets of their own namespace.",
    )
    name = forms.CharField(max_length=63, widget=TextInput(attrs={**_PLAIN, "placeholder": "db"}))


class NewSecretForm(_NewForm, KeyForm):
    field_order = ["namespace", "name", "key", "value"]
    registry = ""


class NewLoginForm(_NewForm):
    """A login for a registry: both of its keys at once (AGT-15)."""

    host = RegistryField(label="Registry", help_text="host or host:port, as the images begin with it.")
    username = forms.CharField(widget=TextInput(attrs=_PLAIN))
    password = forms.CharField(
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Never shown again.",
    )

    def __init__(self, secret: Secret | None = None, data: Any = None) -> None:
        super().__init__(data)

    @property
    def values(self) -> dict[str, str]:
        """By key; once the form is valid."""
        return {USERNAME: self.cleaned_data["username"], PASSWORD: self.cleaned_data["password"]}

    @property
    def registry(self) -> str:
        return str(self.cleaned_data["host"])
