"""Agents of simulated devices replace themselves: the real agent and updater, on hosts that fetch and start nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.version import VERSION
from agent.wire.messages import DeploymentState
from devices.models import Device
from simulation.cast import Knobs
from tests.integration.simulation.rehearsal import Rehearsal
from upgrades.models import Attempt, State

pytestmark = pytest.mark.django_db

Rehearse = Callable[..., Rehearsal]


def versions() -> dict[str, str]:
    return dict(Device.objects.values_list("name", "agent_version"))


def are_over() -> bool:
    states = set(Attempt.objects.values_list("state", flat=True))
    return bool(states) and states <= {State.COMPLETED, State.FAILED}


@pytest.mark.clause("UPG-2", "UPG-4")
@pytest.mark.case("U6", "U9")
def test_devices_with_every_fault_change_their_agents_and_those_that_cannot_keep_theirs(rehearse: Rehearse) -> None:
    knobs = Knobs(offline=0.3, offline_seconds=40, duplicate=0.3, reorder=0.3, clock_off=0.3, failing_agents=0.25)
    scene = rehearse(8, knobs)
    scene.pass_time(120)  # until everybody's updater is known
    unfit = {device.name for device in scene.some(lambda device: device.character.fails_agents)}
    for version in ("9.0.0", "8.0.0"):
        scene.replace_agents(version)
        scene.until(are_over, within=3600)
        scene.pass_time(200)
        assert versions() == {name: VERSION if name in unfit else version for name in versions()}
        attempts = Attempt.objects.filter(agent_upgrade__version=version)
        assert attempts.count() == 8, "one for each, and never in a loop"
        assert {each.device_name for each in attempts if each.state == State.FAILED} == unfit
        restored = [attempt for attempt in attempts if attempt.device_name in unfit]
        assert all(f"({VERSION}) runs again" in attempt.message for attempt in restored), restored[0].message


@pytest.mark.clause("UPG-3")
def test_containers_go_on_while_their_agent_is_replaced(rehearse: Rehearse) -> None:
    scene = rehearse(2, Knobs())
    scene.apply()
    scene.until(lambda: all(device.is_in(DeploymentState.CONVERGED) for device in scene.fleet.devices), within=600)
    before = {device.name: device.runtime.containers() for device in scene.fleet.devices}
    scene.replace_agents("9.0.0")
    scene.until(are_over, within=3600)
    scene.pass_time(200)
    assert set(versions().values()) == {"9.0.0"}
    assert {device.name: device.runtime.containers() for device in scene.fleet.devices} == before
