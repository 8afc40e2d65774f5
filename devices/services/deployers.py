"""Who may name a group in ``allowedGroups`` (DEP-7)."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db import transaction

from devices.models import DeviceGroup
from fleet.core import audit

KIND = "DeviceGroup"


def group_set_deployers(*, group: DeviceGroup, deployers: Iterable[Group], actor: User | None) -> None:
    """Say which roles may deploy to a group; running rollouts go on. The same roles again change nothing."""
    wanted = set(deployers)
    with transaction.atomic():
        before = set(group.deployers.select_for_update())
        if wanted == before:
            return
        group.deployers.set(wanted)
        detail = {"before": sorted(map(str, before)), "after": sorted(map(str, wanted))}
        audit.record(actor=actor, action="set-deployers", kind=KIND, name=group.name, detail=detail)
