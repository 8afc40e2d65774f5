"""What a device says of a revision that it cannot have seen proves nothing."""

from __future__ import annotations

import pytest

from agent.wire.messages import DeploymentReport
from devices.services.upkeep import epoch_begin
from rollouts import services
from rollouts.models import Observation, Phase
from tests.integration.devices.door import Door
from tests.integration.rollouts.world import STATES, World

pytestmark = pytest.mark.django_db


@pytest.mark.clause("DEP-11")
def test_a_claim_from_before_a_revision_existed_opens_no_gate(world: World) -> None:
    canary, other = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    world.says(canary, deployment, "converged", revision=2)
    world.drain()
    assert world.revision(deployment).phase == Phase.CANARY

    world.rollout(world.manifest(image="registry.example.com/api:2.0"))
    services.sweep()
    revision = world.revision(deployment)
    assert (revision.generation, revision.phase) == (2, Phase.CANARY)
    assert revision.message == "Waiting for canary edge-1: has not reported on this revision yet"
    assert world.told(other, deployment) is None

    world.says(canary, deployment, "converged", revision=2)
    world.drain()
    assert world.told(other, deployment) == 2


@pytest.mark.clause("AGT-9", "DEP-11")
def test_what_a_device_remembers_of_a_lost_time_is_no_proof(world: World) -> None:
    """After a restore generations are given again: the old second revision is another one than the new."""
    door = Door()
    credential = door.enrolled("edge-1")
    device = door.device("edge-1")
    world.group().devices.add(device)
    world.relabel(device, role="analyzer")
    deployment = world.rollout()
    epoch_begin()
    world.rollout(world.manifest(image="registry.example.com/api:2.0"))

    def says_converged(sequence: int, epoch: int) -> str:
        report = {"uid": str(deployment.uid), "revision": 2, "state": "converged"}
        assert door.report(credential, sequence, epoch=epoch, deployments=[report]).status_code == 200
        world.drain()
        services.sweep()
        return str(world.revision(deployment).phase)

    assert says_converged(1, epoch=1) == Phase.RELEASING
    assert says_converged(2, epoch=2) == Phase.CONVERGED


def test_a_report_of_a_revision_that_does_not_exist_hides_no_other_deployment(world: World) -> None:
    device = world.device("edge-1")
    first, second = world.rollout(), world.rollout(world.manifest("web"))
    said = [DeploymentReport(uid=str(one.uid), revision=9, state=STATES["converged"]) for one in (first,)]
    said += [DeploymentReport(uid=str(second.uid), revision=1, state=STATES["converged"])]
    world.reports(device, said)
    world.drain()
    assert [row.deployment_uid for row in Observation.objects.all()] == [second.uid]
    services.sweep()
    assert world.revision(first).phase == Phase.RELEASING
    assert world.revision(second).phase == Phase.CONVERGED
