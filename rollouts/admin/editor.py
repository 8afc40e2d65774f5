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

from devices.selectors import match
from fleet.core import kinds
from fleet.core.adminkit.pages import ServiceAdmin
from fleet.core.adminkit.previews import Preview, add_previewer, preview
from fleet.core.door import Admitted, ManifestInvalid, admit
from fleet.core.errors import FleetError
from rollouts import selectors, services
from rollouts.admin import manifest
from rollouts.models import Deployment
from rollouts.selectors.matching import spec_of

_DOCUMENT = re.compile(r"document (\d+)(?:: ?|\.|$)")
NAMED = 30


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong with the text: where (with the line, if it can be told), and what."""

    path: str
    message: str
    line: int | None = None


class EditorViews(ServiceAdmin):
    """The pages of the editor, for the deployments' admin."""

    def get_urls(self) -> list[URLPattern]:
        name = self.view_name("edit")
        return [path("<path:object_id>/edit/", self.admin_site.admin_view(self.edit), name=name), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("rollouts.add_deployment")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self._editor(request, None, manifest.EXAMPLE)

    def edit(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The editor, filled with the newest revision."""
        if not request.user.has_perm("rollouts.change_deployment"):
            raise PermissionDenied
        deployment = self.found(request, object_id)
        return self._editor(request, deployment, manifest.text(deployment, selectors.current_revision(deployment)))

    def _editor(self, request: HttpRequest, deployment: Deployment | None, initial: str) -> HttpResponse:
        text = request.POST.get("manifest", initial).replace("\r\n", "\n")
        stage = request.POST.get("stage", "write") if request.method == "POST" else "write"
        if stage == "write":
            return self._write(request, deployment, text)
        try:
            admitted = admit(text)
            if stage == "apply":
                return self._apply(request, admitted)
            kinds.check_permissions(admitted, request.user)
            previews = [preview(each, request.user) for each in admitted]
        except ManifestInvalid as refused:
            return self._write(request, deployment, text, complaints(text, refused.faults), refused.status)
        except FleetError as error:
            return self._write(request, deployment, text, [Complaint("", str(error))], status=error.status)
        context = self.page_context(request, deployment, manifest=text, previews=previews, title="Preview")
        return TemplateResponse(request, "fleet/preview.html", context)

    def _write(
        self,
        request: HttpRequest,
        deployment: Deployment | None,
        text: str,
        faults: Sequence[Complaint] = (),
        status: int = HTTPStatus.OK,
    ) -> HttpResponse:
        cancel = self.link("change", deployment.pk) if deployment else self.link("changelist")
        context = self.page_context(
            request, deployment, manifest=text, faults=faults, cancel=cancel, add=not deployment
        )
        return TemplateResponse(request, "fleet/editor.html", context, status=status)

    def _apply(self, request: HttpRequest, admitted: list[Admitted]) -> HttpResponse:
        applied = kinds.manifests_apply(manifests=admitted, actor=request.user)
        for each, done in zip(admitted, applied, strict=True):
            name = f"{each.manifest.metadata.namespace}/{each.manifest.metadata.name}"
            messages.success(request, f"{name} {done.outcome} (generation {done.generation}).")
        if len(applied) > 1:
            return HttpResponseRedirect(self.link("changelist"))
        page = kinds.of(admitted[0]).model.replace(".", "_")
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:{page}_change", args=[applied[0].pk]))


def complaints(text: str, faults: Sequence[Any]) -> list[Complaint]:
    """The door's faults with the line of each, in the order of the text."""
    found = []
    for fault in faults:
        document = _DOCUMENT.match(fault.path)
        inner = fault.path[document.end() :] if document else fault.path
        line = manifest.line_of(text, inner, int(document[1]) - 1 if document else 0) if fault.path else None
        found.append(Complaint(fault.path, fault.message, line))
    return sorted(found, key=lambda each: each.line or 0)


def _preview(admitted: Admitted, user: Any) -> Preview:
    applied = services.deployment_apply(manifest=admitted, actor=user, dry_run=True)
    metadata = admitted.manifest.metadata
    result = Preview(f"{metadata.namespace}/{metadata.name}", applied.outcome, applied.generation)
    matched = match(admitted.manifest.spec.targetSelector, admitted.manifest.spec.allowedGroups)
    result.obstacle = matched.obstacle.message if matched.obstacle else ""
    result.matched = len(matched.chosen)
    result.canaries = sorted(each.device.name for each in matched.chosen if each.device.canary)
    existing = selectors.deployment_list().filter(namespace=metadata.namespace, name=metadata.name).first()
    if existing is not None:
        _compare(result, existing, admitted, {each.device.name for each in matched.chosen})
    return result


add_previewer("Deployment", _preview)


def _compare(result: Preview, existing: Deployment, admitted: Admitted, chosen: set[str]) -> None:
    """How the set and the text differ from the running revision's."""
    revision = selectors.current_revision(existing)
    frozen = set(revision.targets.values_list("device_name", flat=True))
    if result.outcome == "unchanged":
        result.latecomers = sorted(chosen - frozen) if frozen else []
        return
    if chosen:
        result.joining, result.leaving = sorted(chosen - frozen), sorted(frozen - chosen)
    metadata = {"name": existing.name, "namespace": existing.namespace}
    before = manifest.dump(metadata, spec_of(revision))
    result.difference = manifest.difference(before, manifest.dump(metadata, admitted.manifest.spec))
