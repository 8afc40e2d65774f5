"""Agents and the real entrance over HTTP: a log that was asked for, a device that comes back after it was given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devices.models import DesiredItem, Device
from harness.waiting import wait_until
from rollouts import services
from rollouts.models import Deployment, LogRequest, LogState
from tests.integration.rollouts.test_images_on_agents import TAG, A, Fleet, world
from tests.integration.rollouts.world import World

__all__ = ["world"]  # the fixture on a database that the server's threads see


@pytest.mark.clause("AGT-16")
@pytest.mark.slow
def test_a_log_travels_through_the_devices_own_poll(world: World, live_server: Any, tmp_path: Path) -> None:
    fleet = Fleet(world, live_server.url, tmp_path, {TAG: A})
    fleet.join("edge-1")
    deployment = world.rollout()
    fleet.round()
    services.logs_request(deployment=deployment, actor=None)

    def is_answered() -> bool:
        fleet.edges["edge-1"].go()
        fleet.edges["edge-1"].agent.answer()
        return LogRequest.objects.get().state != LogState.WAITING

    wait_until(is_answered, seconds=20, what="the device answers")
    request = LogRequest.objects.get()
    assert (request.state, request.problem) == (LogState.ANSWERED, "")
    assert not DesiredItem.objects.filter(kind="logs").exists()


@pytest.mark.clause("DEP-14")
@pytest.mark.slow
def test_a_given_up_device_that_comes_back_removes_what_it_has(world: World, live_server: Any, tmp_path: Path) -> None:
    fleet = Fleet(world, live_server.url, tmp_path, {TAG: A})
    fleet.join("edge-1")
    deployment = world.rollout()
    fleet.round()
    assert fleet.containers("edge-1")
    services.deployment_delete(deployment=deployment, actor=None)
    services.deployment_forget_device(deployment=deployment, device=Device.objects.get(), actor=None)
    assert not Deployment.objects.exists()
    fleet.round()
    assert not fleet.containers("edge-1")
