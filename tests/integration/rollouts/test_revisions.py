"""Applying, superseding, retargeting (DEP-1, DEP-9, DEP-13)."""

from __future__ import annotations

import pytest

from devices.models import DesiredHead
from fleet.core.errors import Conflict
from fleet.core.models import AuditEntry
from fleet.targeting.models import TargetState
from rollouts import services
from rollouts.models import Deployment, Phase, PhaseChange, Revision
from tests.integration.rollouts.world import World

NEW = "registry.example.com/api:2.0"


@pytest.mark.clause("DEP-9")
def test_the_same_spec_again_changes_nothing(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    head = DesiredHead.objects.get(device=device).version
    again = world.apply()
    assert (again.outcome, again.generation) == ("unchanged", 1)
    world.evaluate(deployment)
    assert Revision.objects.count() == 1
    assert DesiredHead.objects.get(device=device).version == head
    assert AuditEntry.objects.filter(action="apply").count() == 1


@pytest.mark.clause("DEP-9")
def test_metadata_makes_no_revision(world: World) -> None:
    world.apply()
    changed = world.apply(world.manifest(labels={"team": "vision"}))
    assert (changed.outcome, changed.generation) == ("configured", 1)
    assert Deployment.objects.get().labels == {"team": "vision"}


@pytest.mark.clause("DEP-9")
def test_a_changed_spec_is_the_next_generation(world: World) -> None:
    world.apply()
    changed = world.apply(world.manifest(image=NEW))
    assert (changed.outcome, changed.generation) == ("configured", 2)


@pytest.mark.clause("DEP-9")
def test_a_dry_run_foretells_and_writes_nothing(world: World) -> None:
    assert world.apply(dry_run=True).outcome == "created"
    assert not Deployment.objects.exists()
    world.apply()
    assert world.apply(dry_run=True).outcome == "unchanged"
    foretold = world.apply(world.manifest(image=NEW), dry_run=True)
    assert (foretold.outcome, foretold.generation) == ("configured", 2)
    assert Revision.objects.count() == 1


@pytest.mark.clause("DEP-13")
@pytest.mark.case("R15")
@pytest.mark.parametrize("state", ["progressing", "failed"])
def test_a_new_revision_takes_over_at_once(world: World, state: str) -> None:
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    world.says(canary, deployment, state, "no space left")
    world.drain()
    world.rollout(world.manifest(image=NEW))
    first, second = Revision.objects.order_by("generation")
    assert first.phase == Phase.SUPERSEDED
    assert first.message == "Superseded by generation 2"
    assert dict(first.targets.values_list("device_name", "state"))["edge-2"] == TargetState.ENDED
    assert second.phase == Phase.CANARY
    assert world.told(canary, deployment) == 2
    assert world.told(rest, deployment) is None
    world.says(canary, deployment, "converged", revision=1)
    world.drain()
    services.revision_evaluate(revision_id=first.pk)
    assert world.told(rest, deployment) is None  # what the old one held it never releases


@pytest.mark.clause("DEP-13")
def test_leavers_keep_the_deployment_until_the_rest_is_released(world: World) -> None:
    canary, leaver = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    world.says(canary, deployment, "converged")
    world.drain()
    assert world.told(leaver, deployment) == 1
    world.relabel(leaver, role="camera")
    world.rollout(world.manifest(image=NEW))
    assert world.told(leaver, deployment) == 1
    world.says(canary, deployment, "converged")
    world.drain()
    assert world.told(leaver, deployment) == 0
    world.says(leaver, deployment, "removed", revision=1)
    world.drain()
    assert world.told(leaver, deployment) is None


@pytest.mark.clause("DEP-13")
def test_a_pending_revision_removes_nothing_from_anybody(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.rollout(world.manifest(role="camera"))
    services.sweep()
    assert world.revision(deployment).phase == Phase.PENDING
    assert world.told(device, deployment) == 1


@pytest.mark.clause("DEP-9")
def test_retarget_is_a_new_revision_of_the_same_spec(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    first = world.revision(deployment)
    second = services.deployment_retarget(deployment=deployment, actor=None)
    assert (second.generation, second.spec_hash) == (2, first.spec_hash)
    assert AuditEntry.objects.get(action="retarget").object_name == "default/api"


@pytest.mark.clause("DEP-14")
def test_what_is_being_deleted_takes_no_manifest(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    services.deployment_delete(deployment=deployment, actor=None)
    with pytest.raises(Conflict, match="is being deleted"):
        world.apply(world.manifest(image=NEW))
    with pytest.raises(Conflict, match="is being deleted"):
        services.deployment_retarget(deployment=deployment, actor=None)


@pytest.mark.clause("DEP-15")
def test_phases_leave_a_history(world: World) -> None:
    canary = world.device("edge-1", canary=True)
    deployment = world.rollout()
    world.says(canary, deployment, "failed", "no space")
    world.drain()
    world.says(canary, deployment, "converged")
    world.drain()
    assert list(PhaseChange.objects.values_list("source", "target")) == [
        ("Pending", "Canary"),
        ("Canary", "Failed"),
        ("Failed", "Converged"),
    ]
