"""The editor of deployments, and what it says of applying one."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from devices.selectors import match
from fleet.core.adminkit import editor
from fleet.core.adminkit.manifests import difference
from fleet.core.adminkit.previews import Preview, add_previewer
from fleet.core.door import Admitted
from rollouts import selectors, services
from rollouts.admin import manifest
from rollouts.models import Deployment
from rollouts.selectors.matching import spec_of


class EditorViews(editor.EditorViews):
    """The pages of the editor, for the deployments' admin."""

    example = manifest.EXAMPLE

    def get_urls(self) -> list[URLPattern]:
        name = self.view_name("edit")
        return [path("<path:object_id>/edit/", self.admin_site.admin_view(self.edit), name=name), *super().get_urls()]

    def edit(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The editor, filled with the newest revision."""
        if not request.user.has_perm("rollouts.change_deployment"):
            raise PermissionDenied
        deployment = self.found(request, object_id)
        return self.editor(request, deployment, manifest.text(deployment, selectors.current_revision(deployment)))


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
    result.difference = difference(before, manifest.dump(metadata, admitted.manifest.spec))
