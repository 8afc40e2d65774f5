"""Which secret values a device may have: those that a deployment which it shall run now refers to (AGT-10, AGT-15)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import msgspec
from django.db.models import F

from agent.wire.images import registry_of
from agent.wire.manifest import PodmanV0
from agent.wire.messages import DEPLOYMENT_KIND, DeploymentDocument
from agent.wire.rules import containers
from devices.models import DesiredItem
from rollouts.models import Life, Revision
from rollouts.selectors.matching import spec_of
from vault.models import Secret
from vault.selectors import Reference


@dataclass(frozen=True, slots=True)
class Need:
    """What a deployment takes from the vault, as its document says."""

    namespace: str = ""
    references: frozenset[Reference] = frozenset()
    registries: frozenset[str] = frozenset()


NOTHING = Need()


def need_on_device(device_id: int, uid: str) -> Need:
    """What the deployment with this uid needs on this device now, by one query.

    Decided by the document that the device was told, not by the newest revision: a device that is held back, that has
    left the target set or shall remove the deployment gets nothing that only others may have.
    """
    if not _is_uid(uid):
        return NOTHING
    items = DesiredItem.objects.filter(device_id=device_id, kind=DEPLOYMENT_KIND, key=uid, remove=False)
    body = items.values_list("document__body", flat=True).first()
    if body is None:
        return NOTHING
    document = msgspec.json.decode(bytes(body), type=DeploymentDocument)
    return _need(document.namespace, document.score)


def needed_by(secret: Secret) -> list[str]:
    """The deployments, as namespace/name, whose newest revision refers to the secret or takes it as a login."""
    newest = Revision.objects.filter(
        deployment__namespace=secret.namespace, deployment__life=Life.ACTIVE, generation=F("deployment__generation")
    ).select_related("deployment")
    return [str(revision.deployment) for revision in newest if _needs(revision, secret)]


def _needs(revision: Revision, secret: Secret) -> bool:
    need = _need(secret.namespace, spec_of(revision).score.data)
    return secret.registry in need.registries or any(secret.name == name for name, _ in need.references)


def _need(namespace: str, score: PodmanV0) -> Need:
    services = [container for _, container in containers(score)]
    refs = (variable.secret for service in services for variable in service.secret_env)
    return Need(
        namespace,
        frozenset(Reference(ref.name, ref.key) for ref in refs),
        frozenset(registry_of(service.image) for service in services) - {""},
    )


def _is_uid(text: str) -> bool:
    """As our keys are written; databases need not be asked for anything else."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
