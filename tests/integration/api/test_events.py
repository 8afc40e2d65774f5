"""What happened by itself, over REST."""

from __future__ import annotations

import pytest

from devices.models import Connectivity
from devices.services import sweep_connectivity
from tests.integration.api.rest import Rest
from tests.integration.rollouts.world import World

pytestmark = [pytest.mark.clause("API-1"), pytest.mark.database]


@pytest.mark.clause("DEV-5")
def test_events_are_listed_newest_first_and_filtered(viewer: Rest, world: World) -> None:
    world.device("edge-1")
    world.rollout()
    world.later(hours=1)
    sweep_connectivity()
    found = viewer.get("events/")["results"]
    assert found[0] == {
        "at": "2026-12-01T15:00:00Z",
        "kind": "Device",
        "name": "edge-1",
        "reason": "Offline",
        "message": f"Was {Connectivity.ONLINE}, is {Connectivity.OFFLINE}",
    }
    reasons = [each["reason"] for each in viewer.get("events/", kind="Deployment", name="default/api")["results"]]
    assert reasons == [each["reason"] for each in found[1:]]
    assert "Releasing" in reasons
    assert viewer.get("events/", reason="Offline")["count"] == 1
    assert viewer.get("events/", kind="Device", name="edge-2")["count"] == 0
