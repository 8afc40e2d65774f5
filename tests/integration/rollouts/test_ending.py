"""Every state can be left: ending and deleting (DEP-14, DEP-17)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from devices.models import Connectivity, DesiredItem
from devices.services import device_forget
from fleet.core.errors import NotFound
from fleet.core.models import AuditEntry
from fleet.targeting.models import TargetState
from rollouts import services
from rollouts.models import Deployment, Observation, Phase
from tests.integration.rollouts.world import World


@pytest.mark.clause("DEP-17")
@pytest.mark.case("R1")
def test_ending_stops_further_release_and_leaves_what_runs(world: World) -> None:
    user = User.objects.create(username="alice", is_superuser=True)
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    services.rollout_end(deployment=deployment, actor=user)
    world.says(canary, deployment, "converged")
    world.drain()
    services.sweep()
    revision = world.revision(deployment)
    assert revision.phase == Phase.CANCELLED
    assert revision.message.startswith("Ended by alice")
    assert world.states(deployment) == {"edge-1": TargetState.RELEASED, "edge-2": TargetState.ENDED}
    assert [world.told(device, deployment) for device in (canary, rest)] == [1, None]
    entry = AuditEntry.objects.get(action="end")
    assert (entry.actor_name, entry.object_name) == ("alice", "default/api")


@pytest.mark.clause("DEP-17")
@pytest.mark.case("R7")
def test_ending_twice_is_ended_once(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    services.rollout_end(deployment=deployment, actor=None)
    services.rollout_end(deployment=deployment, actor=None)
    assert world.revision(deployment).phase == Phase.CANCELLED
    assert AuditEntry.objects.filter(action="end").count() == 1


def _pending(world: World) -> Deployment:
    return world.rollout(world.manifest(role="camera"))


def _canary(world: World) -> Deployment:
    world.device("edge-9", canary=True)
    return world.rollout()


def _failed(world: World) -> Deployment:
    device = world.device("edge-9")
    deployment = world.rollout()
    world.says(device, deployment, "failed", "no space")
    world.drain()
    return deployment


def _converged(world: World) -> Deployment:
    device = world.device("edge-9")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    world.drain()
    return deployment


def _cancelled(world: World) -> Deployment:
    deployment = _canary(world)
    services.rollout_end(deployment=deployment, actor=None)
    return deployment


@pytest.mark.clause("DEP-14")
@pytest.mark.clause("DEP-17")
@pytest.mark.case("R3")
@pytest.mark.parametrize("made", [_pending, _canary, _failed, _converged, _cancelled])
def test_deletable_in_every_state(world: World, made) -> None:
    deployment = made(world)
    services.deployment_delete(deployment=deployment, actor=None)
    for item in DesiredItem.objects.select_related("device"):
        assert item.remove
        world.says(item.device, deployment, "removed", revision=1)
    world.drain()
    assert not Deployment.objects.exists()
    assert not DesiredItem.objects.exists()
    assert not Observation.objects.exists()


@pytest.mark.clause("DEP-14")
@pytest.mark.case("R3")
def test_nothing_told_means_gone_at_once(world: World) -> None:
    deployment = _pending(world)
    services.deployment_delete(deployment=deployment, actor=None)
    assert not Deployment.objects.exists()


@pytest.mark.clause("DEP-14")
def test_an_offline_device_is_waited_for_and_named_until_it_is_forgotten(world: World) -> None:
    here, away = world.devices(["edge-1", "edge-3"])
    deployment = world.rollout()
    world.later(minutes=2)
    world.goes(away, Connectivity.OFFLINE)
    world.later(minutes=10)
    services.deployment_delete(deployment=deployment, actor=None)
    world.says(here, deployment, "removed", revision=1)
    world.drain()
    services.sweep()
    assert Deployment.objects.get().removal_message == (
        "Waiting for edge-3 to remove its containers: offline since 14:02 UTC; "
        "if it will not come back: fleetctl forget-device default/api edge-3"
    )
    device_forget(device=away, actor=None)
    services.sweep()
    assert not Deployment.objects.exists()


@pytest.mark.clause("DEP-14")
def test_a_device_that_says_anything_else_has_not_removed(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    for words in ("converged", "progressing", "failed"):
        world.says(device, deployment, words, revision=1)
        world.drain()
        services.sweep()
        assert Deployment.objects.exists()


@pytest.mark.clause("DEP-14")
def test_devices_of_an_older_revision_are_cleaned_too(world: World, settings: Any) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.rollout(world.manifest(role="camera"))  # pending: edge-1 keeps generation 1
    services.deployment_delete(deployment=deployment, actor=None)
    assert world.told(device, deployment) == 0
    assert Deployment.objects.exists()


@pytest.mark.clause("DEP-14")
def test_deleting_twice_is_asked_once(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    services.deployment_delete(deployment=deployment, actor=None)
    assert AuditEntry.objects.filter(action="delete").count() == 1


@pytest.mark.clause("DEP-17")
def test_what_is_gone_is_said_to_be_gone(world: World) -> None:
    deployment = _pending(world)
    services.deployment_delete(deployment=deployment, actor=None)
    deployment.pk = 1
    services.deployment_delete(deployment=deployment, actor=None)
    with pytest.raises(NotFound, match="default/api is gone"):
        services.rollout_end(deployment=deployment, actor=None)
    with pytest.raises(NotFound, match="default/api is gone"):
        services.deployment_retarget(deployment=deployment, actor=None)
