"""Deleting with devices that are away, and giving them up (DEP-13, DEP-14)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import User

from devices.models import Connectivity, DesiredHead, DesiredItem
from devices.services import device_forget
from fleet.core.errors import Conflict, NotFound
from fleet.core.models import AuditEntry, Event
from fleet.targeting.models import TargetState
from rollouts import services
from rollouts.models import Deployment, Phase, Target
from tests.integration.rollouts.together import together
from tests.integration.rollouts.world import World


@pytest.mark.clause("DEP-14")
@pytest.mark.database
def test_giving_up_the_last_device_ends_the_object_and_is_audited(world: World) -> None:
    user = User.objects.create(username="alice", is_superuser=True)
    here, away = world.devices(["edge-1", "edge-3"])
    deployment = world.rollout()
    world.goes(away, Connectivity.OFFLINE)
    services.deployment_delete(deployment=deployment, actor=user)
    world.says(here, deployment, "removed", revision=1)
    world.drain()
    version = DesiredHead.objects.get(device=away).version
    services.deployment_forget_device(deployment=deployment, device=away, actor=user)
    assert not Deployment.objects.exists()
    assert not DesiredItem.objects.exists()
    assert DesiredHead.objects.get(device=away).version > version  # so that it hears of it if it ever comes back
    entry = AuditEntry.objects.get(action="forget-device")
    assert (entry.actor_name, entry.object_name, entry.detail) == ("alice", "default/api", {"device": "edge-3"})
    assert Event.objects.get(reason="DeviceGivenUp").message == (
        "alice gave up edge-3; its containers may still run there"
    )


@pytest.mark.clause("DEP-14")
def test_the_others_are_still_waited_for(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"])
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    services.deployment_forget_device(deployment=deployment, device=first, actor=None)
    assert Deployment.objects.get().removal_message == (
        "Waiting for edge-2 to remove its containers: has not confirmed it yet"
    )
    with pytest.raises(Conflict, match="does not wait for edge-1; it waits for edge-2"):
        services.deployment_forget_device(deployment=deployment, device=first, actor=None)
    assert AuditEntry.objects.filter(action="forget-device").count() == 1
    assert world.told(second, deployment) == 0


@pytest.mark.clause("DEP-14", "DEP-16")
def test_what_a_device_says_about_the_removal_is_repeated_but_not_what_it_said_before(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "failed", "service api exited with code 1")
    world.drain()
    world.later(minutes=1)
    services.deployment_delete(deployment=deployment, actor=None)
    assert Deployment.objects.get().removal_message == (
        "Waiting for edge-1 to remove its containers: has not confirmed it yet"
    )
    world.says(device, deployment, "progressing", "container api is stopped, for at most 30 s")
    world.drain()
    assert Deployment.objects.get().removal_message == (
        "Waiting for edge-1 to remove its containers: container api is stopped, for at most 30 s"
    )


@pytest.mark.clause("DEP-14", "DEP-16")
def test_who_is_away_is_named_before_those_that_only_take_their_time(world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(6)])
    deployment = world.rollout()
    world.goes(devices[5], Connectivity.OFFLINE)
    services.deployment_delete(deployment=deployment, actor=None)
    assert Deployment.objects.get().removal_message == (
        "Waiting for 6 devices to remove their containers: edge-5 (offline since 14:00 UTC), "
        "edge-0 (has not confirmed it yet), edge-1 (has not confirmed it yet) and 3 more; "
        "if edge-5 will not come back: fleetctl forget-device default/api edge-5"
    )


@pytest.mark.clause("DEP-14")
def test_a_device_is_given_up_by_a_deletion_only(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    with pytest.raises(Conflict, match="is not being deleted"):
        services.deployment_forget_device(deployment=deployment, device=device, actor=None)
    assert world.told(device, deployment) == 1
    services.deployment_delete(deployment=deployment, actor=None)
    services.deployment_forget_device(deployment=deployment, device=device, actor=None)
    with pytest.raises(NotFound, match="default/api is gone"):
        services.deployment_forget_device(deployment=deployment, device=device, actor=None)


@pytest.mark.clause("DEP-14")
def test_what_a_given_up_device_says_later_is_taken_in_without_a_word(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    services.deployment_forget_device(deployment=deployment, device=device, actor=None)
    world.says(device, deployment, "converged", revision=1)
    assert world.drain() == 1
    again = world.rollout()
    assert again.uid != deployment.uid
    world.says(device, deployment, "converged", revision=1)  # of the old one still
    world.drain()
    assert world.revision(again).phase == Phase.RELEASING


@pytest.mark.clause("DEP-14")
def test_the_same_name_again_is_refused_until_the_old_one_is_gone(world: World) -> None:
    device = world.device("edge-3")
    world.goes(device, Connectivity.OFFLINE)
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    for dry_run in (False, True):
        with pytest.raises(Conflict) as refused:
            world.apply(dry_run=dry_run)
        assert str(refused.value) == (
            "Deployment default/api is being deleted (Waiting for edge-3 to remove its containers: offline since "
            "14:00 UTC; if it will not come back: fleetctl forget-device default/api edge-3); "
            "apply it again when it is gone"
        )
    services.deployment_forget_device(deployment=deployment, device=device, actor=None)
    assert world.apply().outcome == "created"


@pytest.mark.clause("DEP-14")
@pytest.mark.clause("DEP-11")
def test_a_deletion_in_the_canary_phase_waits_for_the_canary_alone(world: World) -> None:
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    world.says(canary, deployment, "converged", revision=1)  # on its way when it was deleted
    world.drain()
    services.sweep()
    assert [world.told(each, deployment) for each in (canary, rest)] == [0, None]
    assert dict(Target.objects.values_list("device_name", "state")) == {
        "edge-1": TargetState.RELEASED,
        "edge-2": TargetState.ENDED,
    }
    world.says(canary, deployment, "removed", revision=1)
    world.drain()
    assert not Deployment.objects.exists()


@pytest.mark.clause("DEP-13")
@pytest.mark.clause("DEP-14")
def test_who_left_the_set_while_away_holds_up_a_deletion_and_no_rollout(world: World) -> None:
    stays, leaver = world.devices(["edge-1", "edge-2"])
    deployment = world.rollout()
    world.goes(leaver, Connectivity.OFFLINE)
    world.relabel(leaver, role="camera")
    services.deployment_retarget(deployment=deployment, actor=None)
    world.evaluate(deployment)
    world.says(stays, deployment, "converged")
    world.drain()
    assert world.revision(deployment).phase == Phase.CONVERGED
    assert world.told(leaver, deployment) == 0  # for the day on which it comes back
    services.deployment_delete(deployment=deployment, actor=None)
    world.says(stays, deployment, "removed")
    world.drain()
    assert Deployment.objects.get().removal_message.startswith("Waiting for edge-2 to remove its containers: offline")
    world.says(leaver, deployment, "removed", revision=1)
    world.drain()
    assert not Deployment.objects.exists()


@pytest.mark.clause("DEP-14")
@pytest.mark.case("R6")
@pytest.mark.django_db(transaction=True)
def test_giving_up_at_once_with_proofs_and_forgetting_ends_in_nothing(world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(30)])
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    for device in devices[:20]:
        world.says(device, deployment, "removed", revision=1)

    def give_up(which: Any) -> Any:
        def each() -> None:
            for device in which:
                with suppress(Conflict, NotFound):  # it was proven, given up or forgotten meanwhile
                    services.deployment_forget_device(deployment=deployment, device=device, actor=None)

        return each

    raised = together(
        give_up(devices[15:]),
        give_up(list(reversed(devices[15:]))),
        lambda: [services.drain_deployments(limit=5) for _ in range(5)],
        lambda: [device_forget(device=device, actor=None) for device in devices[28:]],
        services.sweep,
    )
    assert raised == []
    services.sweep()
    assert not Deployment.objects.exists()
    assert not DesiredItem.objects.exists()
