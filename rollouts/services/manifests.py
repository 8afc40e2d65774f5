"""A text with several manifests is applied as a whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction

from fleet.core.door import Admitted
from rollouts.services.applying import Applied, deployment_apply


def manifests_apply(*, manifests: Sequence[Admitted], actor: User | None, dry_run: bool = False) -> list[Applied]:
    """Apply each, in one transaction and in the order of their names, so that two texts never wait for each other.

    Raises:
        Denied: the actor may not deploy to one of the groups (DEP-7); nothing was applied then.
        Conflict: one of the deployments is being deleted; nothing was applied then.
    """
    done: dict[int, Applied] = {}
    by_name = sorted(range(len(manifests)), key=lambda index: _identity(manifests[index]))
    with transaction.atomic():
        for index in by_name:
            done[index] = deployment_apply(manifest=manifests[index], actor=actor, dry_run=dry_run)
    return [done[index] for index in range(len(manifests))]


def _identity(admitted: Admitted) -> tuple[str, str]:
    return admitted.manifest.metadata.namespace, admitted.manifest.metadata.name
