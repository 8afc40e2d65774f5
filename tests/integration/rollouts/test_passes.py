"""Passes over everything: one object's error stops no other, and every crash is completed by the next (R4, R9, R10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from devices.models import Connectivity, DesiredHead, DesiredItem
from fleet.core.leases import lease
from rollouts import jobs, services
from rollouts.models import Phase, PhaseChange, Revision, Target
from rollouts.services import evaluation, passes
from tests.integration.rollouts.world import World


class Killed(BaseException):
    """As a SIGKILL would have it: nothing after this point happens."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.case("R4")
@pytest.mark.case("R9")
def test_an_error_in_one_deployment_leaves_the_others_moving(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    device = world.device("edge-1")
    broken = world.apply(world.manifest("broken")).deployment
    healthy = world.apply(world.manifest("healthy")).deployment
    assert broken is not None
    assert healthy is not None
    real = evaluation._match_if_pending

    def fails_for_one(pk: int) -> Any:
        if Revision.objects.get(pk=pk).deployment.name == "broken":
            raise RuntimeError("a fault of ours")
        return real(pk)

    monkeypatch.setattr(evaluation, "_match_if_pending", fails_for_one)
    services.sweep()
    assert world.told(device, healthy) == 1
    assert world.revision(broken).phase == Phase.PENDING


@pytest.mark.case("R9")
def test_a_failed_device_holds_up_only_its_own_deployment(world: World) -> None:
    sick, well = world.device("edge-1", canary=True, role="a"), world.device("edge-2", role="b")
    first = world.rollout(world.manifest("first", role="a"))
    second = world.rollout(world.manifest("second", role="b"))
    world.says(sick, first, "failed", "no space left")
    world.says(well, second, "converged")
    world.drain()
    assert world.revision(first).phase == Phase.FAILED
    assert world.revision(second).phase == Phase.CONVERGED


STEPS: list[tuple[Any, str]] = [
    (evaluation, "targets_freeze"),
    (evaluation, "phase_move"),
    (evaluation, "_step"),
    (evaluation, "_brought_up_to_date"),
    (evaluation.mailbox, "desired_put"),
    (evaluation, "targets_release"),
    (evaluation, "conclude"),
]


@pytest.mark.case("R10")
@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
@pytest.mark.parametrize("canary", [True, False])
def test_an_evaluation_that_dies_anywhere_is_completed_by_the_next_pass(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, canary: bool
) -> None:
    device = world.device("edge-1", canary=canary)
    deployment = world.apply().deployment
    assert deployment is not None
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, _then_die(getattr(owner, step)))
        with pytest.raises(Killed):
            world.evaluate(deployment)
    services.sweep()
    assert world.told(device, deployment) == 1
    assert DesiredItem.objects.count() == Target.objects.count() == 1
    assert world.revision(deployment).phase == (Phase.CANARY if canary else Phase.RELEASING)
    assert PhaseChange.objects.count() == 1


def _then_die(step: Callable[..., Any]) -> Callable[..., Any]:
    def stepped(*args: Any, **kwargs: Any) -> None:
        step(*args, **kwargs)
        raise Killed

    return stepped


@pytest.mark.case("R10")
@pytest.mark.case("R13")
def test_a_lost_bell_costs_time_only(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.apply().deployment  # nobody rings: the test's transaction never commits
    assert deployment is not None
    services.sweep()
    assert world.told(device, deployment) == 1


@pytest.mark.case("R12")
def test_a_pass_steps_back_for_another_runner_only_never_for_itself(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"], role="a")
    deployment = world.apply(world.manifest("first", role="a")).deployment
    assert deployment is not None
    jobs.sweep()
    jobs.sweep()
    assert world.told(first, deployment) == 1
    again = world.apply(world.manifest("second", role="a")).deployment
    assert again is not None
    with lease("rollouts.sweep", seconds=60) as ours:
        assert ours
        jobs.sweep()
    assert world.told(second, again) is None
    jobs.sweep()
    assert world.told(second, again) == 1


@pytest.mark.case("R12")
def test_a_new_revision_supersedes_the_others_and_never_itself(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    for generation in (2, 3):
        revision = services.deployment_retarget(deployment=deployment, actor=None)
        assert revision.phase == Phase.PENDING
        others = Revision.objects.exclude(pk=revision.pk)
        assert {other.message for other in others.filter(generation=generation - 1)} == {
            f"Superseded by generation {generation}"
        }


@pytest.mark.case("R14")
def test_every_pass_twice_changes_nothing_more(world: World) -> None:
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    world.says(canary, deployment, "converged")
    world.drain()
    world.says(rest, deployment, "progressing", "pulling image")
    for once in (world.drain, services.sweep, services.count_latecomers):
        once()
        before = _everything()
        once()
        assert _everything() == before


def _everything() -> list[Any]:
    models = (Revision, Target, DesiredItem, DesiredHead, PhaseChange)
    return [list(model.objects.order_by("pk").values()) for model in models]


@pytest.mark.clause("DEP-16")
@pytest.mark.case("R1")
def test_a_converged_rollout_notices_a_device_that_goes_offline(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    world.drain()
    world.later(seconds=1)
    world.goes(device, Connectivity.OFFLINE)
    services.sweep()
    assert world.revision(deployment).offline == 1
    assert world.revision(deployment).phase == Phase.CONVERGED


@pytest.mark.case("R14")
def test_a_converged_rollout_is_not_looked_at_all_the_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    world.later(seconds=1)
    world.drain()
    looked: list[int] = []
    monkeypatch.setattr(passes, "revision_evaluate", lambda *, revision_id: looked.append(revision_id))
    services.sweep()
    assert looked == []
    world.later(minutes=2)
    services.sweep()
    assert looked == [world.revision(deployment).pk]
