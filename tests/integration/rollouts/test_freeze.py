"""Who is in the set, when it is frozen, and why nothing is (DEP-7, DEP-10)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User

from devices.group_sources import GroupSourceError
from devices.models import DesiredItem, Device
from fleet.core.errors import Denied
from fleet.targeting.models import TargetState
from rollouts import selectors, services
from rollouts.models import Phase, Target
from tests.integration.rollouts.world import World


class Broken:
    def members(self, groups):
        raise GroupSourceError("directory.example.com: connection refused")


class Surprising:
    def members(self, groups):
        raise KeyError("oops")


class Partial:
    def members(self, groups):
        return {}


class Everyone:
    def members(self, groups):
        return {group: frozenset(Device.objects.values_list("name", flat=True)) for group in groups}


def condition(revision, kind: str) -> dict[str, str]:
    return next(found for found in revision.conditions if found["type"] == kind)


@pytest.mark.clause("DEP-7")
def test_without_a_group_source_nothing_matches(world: World, settings: Any) -> None:
    settings.FLEET_GROUP_SOURCE = None
    device = world.device("edge-1")
    deployment = world.rollout()
    revision = world.revision(deployment)
    assert revision.phase == Phase.PENDING
    assert revision.message == "No group source is configured, so no device matches; see docs/how-to/groups.md"
    assert condition(revision, "GroupSourceMissing")["status"] == "True"
    assert not Target.objects.exists()
    assert world.told(device, deployment) is None


@pytest.mark.clause("DEP-7")
@pytest.mark.parametrize(
    ("source", "words"),
    [(Broken, "directory.example.com: connection refused"), (Partial, "lab"), (Surprising, "oops")],
)
def test_a_group_source_that_fails_freezes_nothing_and_is_asked_again(
    world: World, settings: Any, source: type, words: str
) -> None:
    settings.FLEET_GROUP_SOURCE = f"{__name__}.{source.__name__}"
    device = world.device("edge-1")
    deployment = world.rollout()
    revision = world.revision(deployment)
    assert revision.phase == Phase.PENDING
    assert words in revision.message
    assert condition(revision, "GroupSourceMissing")["status"] == "False"
    assert not Target.objects.exists()
    settings.FLEET_GROUP_SOURCE = f"{__name__}.Everyone"
    services.sweep()
    assert world.told(device, deployment) == 1


@pytest.mark.clause("DEP-7")
def test_a_failing_group_source_removes_nothing(world: World, settings: Any) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    world.drain()
    settings.FLEET_GROUP_SOURCE = f"{__name__}.Broken"
    services.deployment_retarget(deployment=deployment, actor=None)
    services.sweep()
    services.count_latecomers()
    assert world.told(device, deployment) == 1
    assert world.revision(deployment).phase == Phase.PENDING


@pytest.mark.clause("DEP-7")
def test_empty_allowed_groups_match_nothing(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout(world.manifest(groups=[]))
    assert world.revision(deployment).message.startswith("allowedGroups is empty")
    assert not Target.objects.exists()


@pytest.mark.clause("DEP-7")
def test_naming_a_group_needs_the_permission_to_deploy_to_it(world: World) -> None:
    user = User.objects.create(username="alice")
    with pytest.raises(Denied, match="alice may not deploy to group lab"):
        world.apply(actor=user)
    role = Group.objects.create(name="lab-people")
    user.groups.add(role)
    world.group().deployers.add(role)
    assert world.apply(actor=user).outcome == "created"
    with pytest.raises(Denied, match="group other"):
        world.apply(world.manifest("second", groups=["lab", "other"]), actor=user)


@pytest.mark.clause("DEP-7")
def test_the_permission_for_any_group_and_superusers(world: World) -> None:
    root = User.objects.create(username="root", is_superuser=True)
    wide = User.objects.create(username="wide")
    wide.user_permissions.add(Permission.objects.get(codename="deploy_to_any_group"))
    assert world.apply(actor=root).outcome == "created"
    assert world.apply(world.manifest("second"), actor=User.objects.get(pk=wide.pk)).outcome == "created"


@pytest.mark.clause("DEP-10")
@pytest.mark.case("R3")
@pytest.mark.parametrize(
    ("selector", "groups", "sentence"),
    [
        ({"role": "camera"}, ["lab"], "No device has the labels role=camera"),
        ({"role": "analyzer"}, ["field"], "2 devices have the labels, none is in the group field"),
    ],
)
def test_an_empty_match_stays_pending_and_says_why(
    world: World, selector: dict[str, str], groups: list[str], sentence: str
) -> None:
    world.devices(["edge-1", "edge-2"])
    deployment = world.rollout(world.manifest(groups=groups, **selector))
    assert world.revision(deployment).phase == Phase.PENDING
    assert world.revision(deployment).message == sentence


@pytest.mark.clause("DEP-10")
def test_a_pending_revision_freezes_when_a_device_comes(world: World) -> None:
    deployment = world.rollout()
    device = world.device("edge-1")
    services.sweep()
    assert world.told(device, deployment) == 1
    assert world.revision(deployment).frozen_at == world.now


@pytest.mark.clause("DEP-10")
def test_the_set_and_its_canaries_stay_as_frozen(world: World) -> None:
    canary, plain = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    world.relabel(canary, role="camera")
    world.group().devices.clear()
    Device.objects.filter(pk=canary.pk).update(canary=False)
    Device.objects.filter(pk=plain.pk).update(canary=True)
    late = world.device("edge-3")
    services.sweep()
    targets = world.revision(deployment).targets
    assert {(row.device_name, row.canary) for row in targets.all()} == {("edge-1", True), ("edge-2", False)}
    assert world.told(plain, deployment) is None
    assert world.told(late, deployment) is None


@pytest.mark.clause("DEP-10")
def test_each_target_says_why_it_is_in_the_set(world: World) -> None:
    device = world.device("edge-1", groups=("lab", "field"))
    deployment = world.rollout(world.manifest(groups=["field", "lab", "spare"]))
    assert world.target(deployment, device).reason == "has the labels role=analyzer; is in groups field, lab"


@pytest.mark.clause("DEP-10")
def test_latecomers_are_counted_and_named_with_the_way_in(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    late = world.device("edge-2")
    services.count_latecomers()
    revision = world.revision(deployment)
    assert revision.latecomers == 1
    assert selectors.latecomers(revision) == ["edge-2"]
    assert condition(revision, "Latecomers")["message"] == (
        "1 device came after the freeze: edge-2; to include: fleetctl retarget default/api"
    )
    services.deployment_retarget(deployment=deployment, actor=None)
    world.evaluate(deployment)
    services.count_latecomers()
    assert world.told(late, deployment) == 2
    assert world.revision(deployment).latecomers == 0


@pytest.mark.clause("DEP-10")
def test_freezing_twice_changes_nothing(world: World) -> None:
    world.devices(["edge-1", "edge-2"])
    deployment = world.rollout()
    before = list(DesiredItem.objects.values()), list(Target.objects.values())
    world.evaluate(deployment)
    assert before == (list(DesiredItem.objects.values()), list(Target.objects.values()))
    assert set(world.states(deployment).values()) == {TargetState.RELEASED}
