"""No state is immortal: every state against every action that an operator has to end it (DEP-17)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from devices.models import DesiredItem, Device
from fleet.core.errors import Conflict
from fleet.core.models import AuditEntry
from fleet.targeting.models import TargetState
from rollouts import services
from rollouts.models import DELETING, Deployment, Phase, Revision, Target
from tests.integration.rollouts.world import World

Made = Callable[[World], Deployment]
FINAL = {Phase.SUPERSEDED, Phase.CANCELLED}


def _after(words: str, *, canary: bool = False) -> Made:
    """A deployment on two devices, of which the first says this."""

    def make(world: World) -> Deployment:
        first = world.device("edge-1", canary=canary)
        world.device("edge-2")
        deployment = world.rollout()
        if words:
            world.says(first, deployment, words, "no space")
            world.says(Device.objects.get(name="edge-2"), deployment, words, "no space")
            world.drain()
        return deployment

    return make


def _ended(world: World) -> Deployment:
    deployment = _after("", canary=True)(world)
    services.rollout_end(deployment=deployment, actor=None)
    return deployment


def _deleting(world: World) -> Deployment:
    deployment = _after("converged")(world)
    services.deployment_delete(deployment=deployment, actor=None)
    return deployment


STATES: dict[str, Made] = {
    Phase.PENDING: lambda world: world.rollout(world.manifest(role="camera")),
    Phase.CANARY: _after("", canary=True),
    Phase.RELEASING: _after(""),
    Phase.FAILED: _after("failed", canary=True),
    Phase.CONVERGED: _after("converged"),
    Phase.CANCELLED: _ended,
    DELETING: _deleting,
}


def _end(world: World, deployment: Deployment, user: User) -> None:
    services.rollout_end(deployment=deployment, actor=user)


def _delete(world: World, deployment: Deployment, user: User) -> None:
    services.deployment_delete(deployment=deployment, actor=user)


def _change(world: World, deployment: Deployment, user: User) -> None:
    world.apply(world.manifest(image="registry.example.com/api:2.0"), actor=user)


def _retarget(world: World, deployment: Deployment, user: User) -> None:
    services.deployment_retarget(deployment=deployment, actor=user)


def _give_up(world: World, deployment: Deployment, user: User) -> None:
    for item in DesiredItem.objects.select_related("device"):
        services.deployment_forget_device(deployment=deployment, device=item.device, actor=user)


ACTIONS = {"end": _end, "delete": _delete, "apply": _change, "retarget": _retarget, "forget-device": _give_up}


@pytest.mark.clause("DEP-17")
@pytest.mark.case("R3")
@pytest.mark.case("R7")
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("state", STATES)
def test_every_action_ends_every_state_or_says_why_it_cannot(world: World, state: str, action: str) -> None:
    user = User.objects.create(username="alice", is_superuser=True)
    deployment = STATES[state](world)
    before = world.revision(deployment)
    assert (DELETING if Deployment.objects.get().deleting_since else before.phase) == state
    if (action == "forget-device") != (state == DELETING) and action != "delete":
        _refused_or_nothing_to_do(world, deployment, action, user)
        return
    ACTIONS[action](world, deployment, user)
    services.sweep()
    left = Revision.objects.filter(pk=before.pk).first()
    assert left is None or left.phase in FINAL
    assert not Target.objects.filter(revision=before, state=TargetState.HELD).exists()
    if action == "forget-device":
        assert not Deployment.objects.exists()
    already_so = (state, action) in {(Phase.CANCELLED, "end"), (DELETING, "delete")}
    assert AuditEntry.objects.filter(action=action, actor_name="alice").exists() != already_so


def _refused_or_nothing_to_do(world: World, deployment: Deployment, action: str, user: User) -> None:
    """Ends that the state does not need: refused with a sentence, and nothing is changed or noted."""
    told = list(DesiredItem.objects.values("device", "version"))
    try:
        ACTIONS[action](world, deployment, user)
    except Conflict as refusal:
        assert "being deleted" in str(refusal)  # noqa: PT017  (a deployment that nobody has got has no device to give up)
    assert list(DesiredItem.objects.values("device", "version")) == told
    assert not AuditEntry.objects.filter(actor_name="alice").exists()
