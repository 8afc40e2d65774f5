"""Applying a manifest in the admin: write, preview, confirm. The same door and service as every other entrance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.enums import ActionVariant

from fleet.core import kinds
from fleet.core.adminkit.manifests import line_of
from fleet.core.adminkit.pages import ServiceAdmin
from fleet.core.adminkit.previews import preview
from fleet.core.door import Admitted, ManifestInvalid, admit
from fleet.core.errors import FleetError

_DOCUMENT = re.compile(r"document (\d+)(?:: ?|\.|$)")


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong with the text: where (with the line, if it can be told), and what."""

    path: str
    message: str
    line: int | None = None


class EditorViews(ServiceAdmin):
    """``add`` is the editor, filled with an example; other pages may show it with :meth:`editor`."""

    example = ""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.add_{self.opts.model_name}")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self.editor(request, None, self.example)

    def editor(self, request: HttpRequest, obj: Any, initial: str) -> HttpResponse:
        """Write, preview, apply: the stages of one form. ``obj`` is what is edited; None when it is new."""
        text = request.POST.get("manifest", initial).replace("\r\n", "\n")
        stage = request.POST.get("stage", "write") if request.method == "POST" else "write"
        if stage == "write":
            return self._write(request, obj, text)
        try:
            admitted = admit(text)
            if stage == "apply":
                return self._apply(request, admitted)
            kinds.check_permissions(admitted, request.user)
            previews = [preview(each, request.user) for each in admitted]
        except ManifestInvalid as refused:
            return self._write(request, obj, text, complaints(text, refused.faults), refused.status)
        except FleetError as error:
            return self._write(request, obj, text, [Complaint("", str(error))], status=error.status)
        context = self.page_context(request, obj, manifest=text, previews=previews, title="Preview")
        return TemplateResponse(request, "fleet/preview.html", context)

    def _write(
        self,
        request: HttpRequest,
        obj: Any,
        text: str,
        faults: Sequence[Complaint] = (),
        status: int = HTTPStatus.OK,
    ) -> HttpResponse:
        cancel = self.link("change", obj.pk) if obj else self.link("changelist")
        context = self.page_context(request, obj, manifest=text, faults=faults, cancel=cancel, add=not obj)
        return TemplateResponse(request, "fleet/editor.html", context, status=status)

    def _apply(self, request: HttpRequest, admitted: list[Admitted]) -> HttpResponse:
        applied = kinds.manifests_apply(manifests=admitted, actor=request.user)
        for each, done in zip(admitted, applied, strict=True):
            messages.success(request, f"{each.full_name} {done.outcome} (generation {done.generation}).")
        if len(applied) > 1:
            return HttpResponseRedirect(self.link("changelist"))
        page = kinds.of(admitted[0]).model.replace(".", "_")
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:{page}_change", args=[applied[0].pk]))


class EditViews(EditorViews):
    """``edit/`` beside an object's page: the editor, filled with its manifest."""

    def manifest_of(self, obj: Any) -> str:
        """The text that would make the object again."""
        raise NotImplementedError

    def may_edit(self, request: HttpRequest, obj: Any) -> bool:
        """Whether this user may change what this object is."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def get_urls(self) -> list[URLPattern]:
        name = self.view_name("edit")
        return [path("<path:object_id>/edit/", self.admin_site.admin_view(self.edit), name=name), *super().get_urls()]

    def edit(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The editor, filled with what is there."""
        if not request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}"):
            raise PermissionDenied
        obj = self.found(request, object_id)
        return self.editor(request, obj, self.manifest_of(obj))

    def buttons(self, request: HttpRequest, obj: Any) -> list[dict[str, Any]]:
        edit = {
            "title": "Edit manifest",
            "icon": "edit",
            "variant": ActionVariant.PRIMARY,
            "attrs": {"data-operation": "edit"},
            "path": self.link("edit", obj.pk),
        }
        return [edit] * self.may_edit(request, obj) + super().buttons(request, obj)


def complaints(text: str, faults: Sequence[Any]) -> list[Complaint]:
    """The door's faults with the line of each, in the order of the text."""
    found = []
    for fault in faults:
        document = _DOCUMENT.match(fault.path)
        inner = fault.path[document.end() :] if document else fault.path
        line = line_of(text, inner, int(document[1]) - 1 if document else 0) if fault.path else None
        found.append(Complaint(fault.path, fault.message, line))
    return sorted(found, key=lambda each: each.line or 0)
