"""What a person gives for a release."""

from __future__ import annotations

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminFileFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from agent.wire import names
from agent.wire.manifest import MAX_ARTIFACT_BYTES
from releases.models import Architecture


class UploadForm(forms.Form):
    """All else is read from the archive."""

    file = forms.FileField(
        label="Archive",
        widget=UnfoldAdminFileFieldWidget,
        help_text="harmony-fleet-…-linux-….tar.gz, as make agent-release builds it.",
    )
    notes = forms.CharField(required=False, max_length=4000, widget=UnfoldAdminTextInputWidget)


class ElsewhereForm(forms.Form):
    """A release that stays where it is."""

    url = forms.CharField(
        max_length=2048, widget=UnfoldAdminTextInputWidget, help_text="https://… or oci://registry/repository:tag"
    )
    version = forms.RegexField(names.VERSION, max_length=64, widget=UnfoldAdminTextInputWidget, help_text="Like 1.2.3.")
    architecture = forms.ChoiceField(choices=Architecture.choices, widget=UnfoldAdminSelectWidget)
    size = forms.IntegerField(
        min_value=1, max_value=MAX_ARTIFACT_BYTES, widget=UnfoldAdminTextInputWidget, help_text="Bytes of the archive."
    )
    sha256 = forms.RegexField(names.SHA256, widget=UnfoldAdminTextInputWidget, help_text="As sha256sum prints it.")
    notes = forms.CharField(required=False, max_length=4000, widget=UnfoldAdminTextInputWidget)

    def clean_sha256(self) -> Any:
        return str(self.cleaned_data["sha256"])
