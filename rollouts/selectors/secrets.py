"""Which secret values a device may have: those that a deployment which it shall run now refers to (AGT-10, AGT-15)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import msgspec

from agent.wire.images import registry_of
from agent.wire.messages import DEPLOYMENT_KIND, DeploymentDocument
from agent.wire.rules import containers
from devices.models import DesiredItem
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
    return NOTHING if body is None else _need(msgspec.json.decode(bytes(body), type=DeploymentDocument))


def _need(document: DeploymentDocument) -> Need:
    services = [container for _, container in containers(document.score)]
    refs = (variable.secret for service in services for variable in service.secret_env)
    return Need(
        document.namespace,
        frozenset(Reference(ref.name, ref.key) for ref in refs),
        frozenset(registry_of(service.image) for service in services) - {""},
    )


def _is_uid(text: str) -> bool:
    """As our keys are written; databases need not be asked for anything else."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
