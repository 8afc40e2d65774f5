"""A tag is resolved once per revision, by the device that proved it first (DEP-18)."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.wire.manifest import DeploymentSpec
from agent.wire.messages import DEPLOYMENT_KIND, DeploymentDocument
from devices.models import DesiredDocument
from devices.services import mailbox
from rollouts import images
from rollouts.images import Pins
from rollouts.models import Deployment, Revision
from rollouts.selectors import standing
from rollouts.selectors.matching import spec_of
from rollouts.services.history import tell


def document_of(deployment: Deployment, spec: dict[str, Any], pins: Pins) -> DesiredDocument:
    """What devices are told of the deployment's present generation."""
    document = DeploymentDocument(
        uid=str(deployment.uid),
        namespace=deployment.namespace,
        name=deployment.name,
        revision=deployment.generation,
        score=msgspec.convert(spec, DeploymentSpec).score.data,
        images=images.digests(pins),
    )
    return mailbox.document_put(document)


def pins_to_begin_with(deployment: Deployment, spec: dict[str, Any]) -> Pins:
    """What the generation before had resolved, of containers that stay as they are (DEP-9).

    Under the lock of that revision, so that it resolves nothing more meanwhile.
    """
    before = Revision.objects.filter(deployment=deployment, generation=deployment.generation - 1).first()
    if before is None or not before.pins:
        return {}
    return images.carried_over(
        spec_of(before).score.data, msgspec.convert(spec, DeploymentSpec).score.data, before.pins
    )


def resolvable(revision: Revision) -> Pins:
    """Pins for what is open, from what devices have proved; one query, none when nothing is open."""
    score = spec_of(revision).score.data
    if not images.open_tags(score, revision.pins):
        return {}
    return images.resolve(score, revision.pins, standing.proofs(revision))


def images_pin(revision: Revision) -> bool:
    """Pin what was proved, for all that are told already and for all that will be; whether there was anything new.

    Under the revision's lock and before any target is touched: heads of devices come first. A device that runs the
    digest restarts nothing.
    """
    found = resolvable(revision)
    if not found:
        return False
    revision.pins = {**revision.pins, **found}
    revision.document = document_of(revision.deployment, revision.spec, revision.pins)
    told = revision.targets.filter(released_at__isnull=False, device__isnull=False)
    mailbox.desired_put(
        kind=DEPLOYMENT_KIND,
        key=str(revision.deployment.uid),
        document=revision.document,
        device_ids=list(told.order_by("device_id").values_list("device_id", flat=True)),
    )
    for tag, pin in found.items():
        words = f"image {tag} resolved to {pin['digest']} by {pin['device']}"
        tell(revision.deployment, reason="Resolved", message=f"{words}; {pin['note']}" if pin["note"] else words)
    return True
