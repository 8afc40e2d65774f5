"""The shelf: which releases there are, who runs them, and what to write to have a device run one."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesCheckboxFilter
from unfold.decorators import display

from fleet.core.adminkit import show
from fleet.core.adminkit.pages import Operation, ServiceAdmin, sentences
from fleet.core.adminkit.records import records_of
from fleet.core.errors import FleetError
from fleet.core.manifest_text import dump
from releases import selectors, services
from releases.admin.forms import ElsewhereForm, UploadForm
from releases.models import ShelvedRelease
from releases.services.shelving import KIND, Elsewhere


def _remove(release: ShelvedRelease, user: Any, _: dict[str, Any]) -> str:
    services.release_remove(release=release, actor=user)
    return f"Release {release} is off the shelf; devices that run it go on."


@admin.register(ShelvedRelease)
class ReleaseAdmin(ServiceAdmin):
    operations = (
        Operation(
            name="remove",
            label="Remove",
            icon="delete",
            permission="releases.delete_shelvedrelease",
            question="Take release {} off the shelf?",
            run=_remove,
            consequences=lambda _: [
                "Devices that run it go on.",
                "Nothing can be upgraded or taken back to it from here.",
            ],
            danger=True,
        ),
    )
    detail_template = "fleet/release.html"
    list_display = ("title", "where", "size_shown", "digest", "devices", "added")
    list_display_links = ("title",)
    list_filter = (("architecture", ChoicesCheckboxFilter),)
    list_filter_submit = True
    search_fields = ("version", "sha256", "notes")
    search_help_text = "Search by version, digest or note"
    empty_title = "No release on the shelf yet"
    empty_text = (
        "Build one with make agent-release, and add the archive here; devices fetch it from this control plane."
    )
    add_label = "Add a release"

    def get_queryset(self, request: HttpRequest) -> Any:
        return selectors.shelf()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("releases.add_shelvedrelease")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        is_elsewhere = "elsewhere" in request.GET
        form = (ElsewhereForm if is_elsewhere else UploadForm)(request.POST or None, request.FILES or None)
        if request.method != "POST" or not form.is_valid():
            return self._form(request, form)
        try:
            made = _noted(form, request.user) if is_elsewhere else _uploaded(form, request.user)
        except FleetError as error:
            return self._form(request, form, error)
        messages.success(request, f"Release {made} is on the shelf.")
        return HttpResponseRedirect(self.link("change", made.pk))

    def _form(self, request: HttpRequest, form: forms.Form, error: FleetError | None = None) -> HttpResponse:
        context = self.page_context(
            request,
            form=form,
            title="Add a release",
            is_elsewhere=isinstance(form, ElsewhereForm),
            cancel=self.link("changelist"),
            errors=sentences(error) if error else [],
        )
        status = error.status if error else HTTPStatus.OK
        return TemplateResponse(request, "fleet/release_new.html", context, status=status)

    def detail_context(self, request: HttpRequest, obj: ShelvedRelease) -> dict[str, Any]:
        target = selectors.target_of(obj, request.build_absolute_uri("/"))
        text = dump("Device", {"name": "DEVICE"}, {"agentUpgrade": target})
        return {"release": obj, "manifest": text, **records_of(request, KIND, str(obj))}

    @display(description="Release", ordering="version")
    def title(self, release: ShelvedRelease) -> SafeString:
        return format_html('{} <span class="hf-mute">{}</span>', release.version, release.architecture)

    @display(description="Lies")
    def where(self, release: ShelvedRelease) -> SafeString:
        if release.file:
            return show.badge("here", show.Look("good", "inventory"))
        return format_html('<span class="hf-mono hf-wrap">{}</span>', release.url)

    @display(description="Size", ordering="size")
    def size_shown(self, release: ShelvedRelease) -> str:
        return filesizeformat(release.size)

    @display(description="SHA-256")
    def digest(self, release: ShelvedRelease) -> SafeString:
        return format_html('<span class="hf-mono" title="{}">{}…</span>', release.sha256, release.sha256[:12])

    @display(description="Devices")
    def devices(self, release: Any) -> SafeString:
        words = f"{release.running} run it"
        words += f", {release.wanting} shall run it" if release.wanting else ""
        return format_html('<span class="hf-nowrap">{}</span>', words)

    @display(description="Added", ordering="added_at")
    def added(self, release: ShelvedRelease) -> SafeString:
        return format_html('<span class="hf-small">{}<br>by {}</span>', show.moment(release.added_at), release.added_by)


def _uploaded(form: forms.Form, user: Any) -> ShelvedRelease:
    given = form.cleaned_data
    return services.release_upload(archive=given["file"], actor=user, notes=given["notes"])


def _noted(form: forms.Form, user: Any) -> ShelvedRelease:
    given = dict(form.cleaned_data)
    notes = given.pop("notes")
    return services.release_note(elsewhere=Elsewhere(**given), actor=user, notes=notes)
