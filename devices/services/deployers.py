"""Who may name a group in ``allowedGroups`` (DEP-7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.contrib.auth.models import Group, User
from django.db import transaction

from devices.models import DeviceGroup
from fleet.core import audit
from fleet.core.errors import Denied

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


def check_groups(groups: Collection[str], *, actor: User | None) -> None:
    """Naming a group needs the permission to deploy to it (DEP-7).

    Raises:
        Denied: names the groups.
    """
    if actor is None or actor.is_superuser or actor.has_perm("devices.deploy_to_any_group"):
        return
    allowed = DeviceGroup.objects.filter(name__in=groups, deployers__user=actor).values_list("name", flat=True)
    denied = sorted(set(groups) - set(allowed))
    if denied:
        word = "group" if len(denied) == 1 else "groups"
        raise Denied(
            f"{actor.get_username()} may not deploy to {word} {', '.join(denied)}; an administrator can add one of "
            f"your roles to the group's deployers"
        )
