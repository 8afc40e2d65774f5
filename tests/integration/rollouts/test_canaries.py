"""Canaries first, and what keeps the gate shut (DEP-11, DEP-12)."""

from __future__ import annotations

import pytest
from django.conf import settings

from devices.models import Connectivity, Device, ReportInbox
from devices.services import device_forget
from fleet.targeting.models import TargetState
from rollouts import services
from rollouts.models import Observation, Phase
from tests.integration.rollouts.world import World


@pytest.mark.clause("DEP-11")
def test_only_canaries_are_told_and_the_rest_after_all_of_them_converged(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    rest = world.device("edge-3")
    deployment = world.rollout()
    assert [world.told(device, deployment) for device in (first, second, rest)] == [1, 1, None]
    assert world.revision(deployment).phase == Phase.CANARY
    world.says(first, deployment, "converged")
    world.drain()
    assert world.told(rest, deployment) is None
    world.says(second, deployment, "converged")
    world.drain()
    assert world.told(rest, deployment) == 1
    assert world.revision(deployment).phase == Phase.RELEASING
    world.says(rest, deployment, "converged")
    world.drain()
    assert world.revision(deployment).phase == Phase.CONVERGED
    assert world.revision(deployment).message == ""


@pytest.mark.clause("DEP-11")
def test_without_a_canary_everybody_is_told_at_once(world: World) -> None:
    devices = world.devices(["edge-1", "edge-2"])
    deployment = world.rollout()
    assert [world.told(device, deployment) for device in devices] == [1, 1]
    assert world.revision(deployment).phase == Phase.RELEASING


@pytest.mark.clause("DEP-11")
@pytest.mark.case("R1")
@pytest.mark.case("R2")
def test_an_offline_canary_keeps_the_gate_shut_and_is_named(world: World) -> None:
    canary, rest = world.device("edge-7", canary=True), world.device("edge-8")
    deployment = world.rollout()
    world.later(minutes=2)
    world.goes(canary, Connectivity.OFFLINE)
    world.later(minutes=30)
    services.sweep()
    revision = world.revision(deployment)
    assert revision.phase == Phase.CANARY
    assert revision.message == "Waiting for canary edge-7: offline since 14:02 UTC"
    assert revision.offline == 1
    assert world.told(rest, deployment) is None


@pytest.mark.clause("DEP-11")
@pytest.mark.case("R2")
def test_an_offline_only_device_is_no_success(world: World) -> None:
    device = world.device("edge-1")
    world.goes(device, Connectivity.OFFLINE)
    deployment = world.rollout()
    services.sweep()
    assert world.revision(deployment).phase == Phase.RELEASING
    assert world.revision(deployment).message == "Waiting for edge-1: offline since 14:00 UTC"


@pytest.mark.clause("DEP-11")
def test_a_report_older_than_the_stale_threshold_is_no_proof(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    rest = world.device("edge-3")
    deployment = world.rollout()
    world.says(first, deployment, "converged")
    world.drain()
    world.later(seconds=settings.FLEET_STALE_SECONDS + 1)
    world.says(second, deployment, "converged")
    world.drain()
    revision = world.revision(deployment)
    assert revision.phase == Phase.CANARY
    assert revision.message == (
        "Waiting for canary edge-1: converged, but a report newer than that of 14:00 UTC is needed"
    )
    assert world.told(rest, deployment) is None
    world.says(first, deployment, "converged")
    world.drain()
    services.sweep()
    assert world.told(rest, deployment) == 1


@pytest.mark.clause("DEP-11")
def test_a_report_that_nobody_has_read_yet_keeps_the_gate_shut(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    rest = world.device("edge-3")
    deployment = world.rollout()
    world.says(first, deployment, "converged")
    services.drain_deployments(limit=10)
    world.says(second, deployment, "converged")
    world.says(first, deployment, "failed", "init exited with 3")
    ReportInbox.objects.filter(device=first).update(id=1_000_000)  # the failure is behind the other in the queue
    services.drain_deployments(limit=1)
    assert world.told(rest, deployment) is None
    world.drain()
    assert world.told(rest, deployment) is None
    assert world.revision(deployment).message.startswith("Canary edge-1 failed: init exited with 3")


@pytest.mark.clause("DEP-10")
@pytest.mark.clause("DEP-11")
def test_the_gate_knows_the_canaries_of_the_freeze(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    rest = world.device("edge-3")
    deployment = world.rollout()
    Device.objects.filter(pk=first.pk).update(canary=False)
    Device.objects.filter(pk=rest.pk).update(canary=True)
    world.says(second, deployment, "converged")
    world.drain()
    assert world.told(rest, deployment) is None
    world.says(first, deployment, "converged")
    world.drain()
    assert world.told(rest, deployment) == 1


@pytest.mark.clause("DEP-11")
def test_convergence_on_an_older_revision_is_no_proof(world: World) -> None:
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    world.says(canary, deployment, "converged")
    world.drain()
    world.rollout(world.manifest(image="registry.example.com/api:2.0"))
    world.says(canary, deployment, "converged", revision=1)
    world.drain()
    services.sweep()
    assert world.revision(deployment).phase == Phase.CANARY
    assert world.told(rest, deployment) == 1


@pytest.mark.clause("DEP-12")
def test_a_failed_canary_shuts_the_gate_until_it_converges(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    rest = world.device("edge-3")
    deployment = world.rollout()
    world.says(first, deployment, "converged")
    world.says(second, deployment, "failed", "init exited with 3")
    world.drain()
    revision = world.revision(deployment)
    assert revision.phase == Phase.FAILED
    assert revision.message == "Canary edge-2 failed: init exited with 3; fix it or apply a new revision"
    assert [world.told(device, deployment) for device in (first, rest)] == [1, None]  # nothing is rolled back
    world.says(second, deployment, "progressing", "running init container")
    world.drain()
    assert world.revision(deployment).phase == Phase.FAILED
    world.says(second, deployment, "converged")
    world.drain()
    assert world.revision(deployment).phase == Phase.RELEASING
    assert world.told(rest, deployment) == 1


@pytest.mark.clause("DEP-12")
@pytest.mark.parametrize("after", ["nothing", "converging"])
def test_forgetting_a_canary_is_its_failure(world: World, after: str) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    rest = world.device("edge-3")
    deployment = world.rollout()
    if after == "converging":
        world.says(first, deployment, "converged")
        world.drain()
    device_forget(device=first, actor=None)
    world.says(second, deployment, "converged")
    world.drain()
    services.sweep()
    revision = world.revision(deployment)
    assert revision.phase == Phase.FAILED
    assert revision.message == "Canary edge-1 failed: the device was forgotten; retarget to leave it out"
    assert world.told(rest, deployment) is None
    services.deployment_retarget(deployment=deployment, actor=None)
    world.evaluate(deployment)
    world.says(second, deployment, "converged")
    world.drain()
    assert world.told(rest, deployment) == 2


@pytest.mark.clause("DEP-12")
def test_forgetting_every_canary_does_not_open_the_gate(world: World) -> None:
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    Device.objects.get(pk=canary.pk)
    device_forget(device=canary, actor=None)
    services.sweep()
    assert world.revision(deployment).phase == Phase.FAILED
    assert world.told(rest, deployment) is None


@pytest.mark.clause("DEP-15")
def test_convergence_is_withdrawn_when_it_ceases(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    world.drain()
    assert world.revision(deployment).phase == Phase.CONVERGED
    world.says(device, deployment, "progressing", "restarting api")
    world.drain()
    assert world.revision(deployment).phase == Phase.RELEASING
    assert world.revision(deployment).message == "Waiting for edge-1: restarting api"
    world.says(device, deployment, "failed", "api exited with 1")
    world.drain()
    assert world.revision(deployment).phase == Phase.FAILED
    world.says(device, deployment, "converged")
    world.drain()
    assert world.revision(deployment).phase == Phase.CONVERGED


@pytest.mark.clause("DEP-15")
def test_a_snapshot_without_the_deployment_withdraws_convergence(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    world.drain()
    world.reports(device, [])  # reinstalled: it knows of nothing
    world.drain()
    assert world.revision(deployment).phase == Phase.RELEASING
    assert world.states(deployment) == {"edge-1": TargetState.RELEASED}
    assert not Observation.objects.exists()
