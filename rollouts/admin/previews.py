"""What the editor says of applying a deployment."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.wire.manifest import DeploymentSpec
from devices.selectors import match
from fleet.core.adminkit.manifests import difference
from fleet.core.adminkit.previews import Preview, add_previewer
from fleet.core.door import Admitted
from rollouts import selectors, services
from rollouts.admin import manifest
from rollouts.models import Deployment
from rollouts.selectors.matching import spec_of


def _preview(admitted: Admitted, user: Any) -> Preview:
    applied = services.deployment_apply(manifest=admitted, actor=user, dry_run=True)
    metadata = admitted.manifest.metadata
    result = Preview(f"{metadata.namespace}/{metadata.name}", applied.outcome, applied.generation)
    spec = msgspec.convert(admitted.spec, DeploymentSpec)
    matched = match(spec.targetSelector, spec.allowedGroups)
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
