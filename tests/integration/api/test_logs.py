"""Logs over REST: ask, look, read (AGT-16)."""

from __future__ import annotations

import pytest

from agent.wire.messages import LogReply
from rollouts import services
from rollouts.models import LogRequest
from tests.integration.api.rest import Rest, problem
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("API-1", "AGT-16")
LOGS = "namespaces/default/deployments/api/logs/"


def test_a_log_is_asked_for_and_looked_at_until_it_is_there(operator: Rest, world: World) -> None:
    device = world.device("edge-1")
    world.rollout()
    asked = operator.call("POST", LOGS, {"lines": 20})
    assert (asked.status_code, asked.headers["Cache-Control"]) == (201, "no-store")
    uid = asked.json()["id"]
    assert asked.json() == {
        "id": uid,
        "device": "edge-1",
        "container": "api",
        "lines": 20,
        "state": "waiting",
        "message": "Waiting for edge-1 to send the log of api",
        "requestedAt": "2026-12-01T14:00:00Z",
        "requestedBy": "operator",
        "endedAt": None,
        "text": "",
        "isCut": False,
    }
    assert operator.get(f"{LOGS}{uid}/") == asked.json()
    services.logs_answer(device_id=device.pk, reply=LogReply(request=uid, text="  started\n"))
    found = operator.get(f"{LOGS}{uid}/")
    assert (found["state"], found["text"], found["message"]) == ("answered", "  started\n", "")


def test_refusals_say_what_is_there(operator: Rest, viewer: Rest, world: World) -> None:
    world.devices(["edge-1", "edge-2"])
    world.rollout()
    assert "edge-1, edge-2" in problem(operator.call("POST", LOGS, {}), 422)["detail"]
    problem(operator.call("POST", LOGS, {"device": "edge-9"}), 404)
    problem(operator.call("POST", LOGS, {"device": "edge-1", "lines": 0}), 422)
    problem(operator.call("POST", LOGS, {"device": "edge-1", "lines": "many"}), 422)
    problem(operator.call("POST", LOGS, {"device": "edge-1", "container": "web"}), 422)
    problem(operator.call("POST", LOGS, {"device": "edge-1", "tail": 5}), 422)
    assert not LogRequest.objects.exists()
    made = operator.call("POST", LOGS, {"device": "edge-1"}).json()["id"]
    for uid in ("x", "00000000-0000-0000-0000-000000000000", "a" * 500):
        problem(operator.call("GET", f"{LOGS}{uid}/"), 404)
    problem(operator.call("GET", f"namespaces/default/deployments/other/logs/{made}/"), 404)
    assert "rollouts.read_logs" in problem(viewer.call("GET", f"{LOGS}{made}/"), 403)["detail"]
