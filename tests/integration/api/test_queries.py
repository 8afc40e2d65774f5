"""A list takes as many queries for many objects as for few."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.models import DeviceGroup, EnrolmentToken
from tests.integration.api.rest import Rest
from tests.integration.rollouts.world import World
from vault.services import secret_put

pytestmark = [pytest.mark.clause("API-1"), pytest.mark.database]
FEW, MANY = 3, 40
LISTS = {
    "deployments/": {"pageSize": 500},
    "devices/": {"pageSize": 500, "selector": "role=analyzer"},
    "events/": {"pageSize": 500},
    "groups/": {"pageSize": 500},
    "enrolment-tokens/": {"pageSize": 500},
    "namespaces/default/secrets/": {"pageSize": 500},
    "namespaces/default/deployments/app-0/targets/": {"pageSize": 500},
    "namespaces/default/deployments/app-0/revisions/": {"pageSize": 500},
    "namespaces/default/deployments/app-0/": {},
    "devices/edge-0/deployments/": {"pageSize": 500},
}


def grow(world: World, first: int, last: int) -> None:
    devices = world.devices([f"edge-{number}" for number in range(first, last)])
    for number, device in enumerate(devices, start=first):
        device.groups.add(DeviceGroup.objects.create(name=f"group-{number}"))
        token = EnrolmentToken.objects.create(
            name=f"token-{number}", token_hash=str(number), created_at=world.now, expires_at=world.now, use_limit=1
        )
        token.groups.set(device.groups.all())
        secret_put(namespace="default", name=f"s-{number}", values={"a": "1", "b": "2"}, registry="", actor=None)
        world.rollout(world.manifest(f"app-{number}"))
        world.rollout(world.manifest("app-0", image=f"registry.example.com/app:{number}"))


def measured(rest: Rest) -> dict[str, int]:
    counts = {}
    for path, query in LISTS.items():
        with CaptureQueriesContext(connection) as queries:
            rest.get(path, **query)
        counts[path] = len(queries)
    return counts


def test_lists_take_a_constant_number_of_queries(viewer: Rest, world: World) -> None:
    grow(world, 0, FEW)
    few = measured(viewer)
    grow(world, FEW, MANY)
    assert len(viewer.names("devices/", pageSize=500)) == MANY
    assert measured(viewer) == few
    assert max(few.values()) <= 10, few
