"""The plan as a pure function: any containers that may be found lead to what is wanted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.reconcile import labels
from agent.reconcile.memory import Memory
from agent.reconcile.plan import Create, Plan, Remove, Start, Unpause
from agent.reconcile.wanted import Wanted
from agent.runtime.base import Container, State
from agent.wire.manifest import PodmanV0
from agent.wire.messages import DeploymentState
from tests.support.fake_control import score, service
from tests.unit.agent.plan_kit import (
    API,
    JOB,
    MIGRATE,
    NOW,
    WEB,
    look,
    running_as_wanted,
    wanted,
)

POOL = [MIGRATE, API, WEB, JOB, service("extra", "r.example/extra:1")]


@st.composite
def scores(draw: st.DrawFn) -> PodmanV0:
    names = draw(st.lists(st.sampled_from(range(5)), min_size=2, max_size=4, unique=True))
    chosen = [
        service(POOL[n].name, f"r.example/{POOL[n].name}:{draw(st.integers(1, 2))}", restart_policy=draw(POLICIES))
        for n in names
    ]
    return score(*chosen[1:], init=chosen[0] if draw(st.booleans()) else None)


POLICIES = st.sampled_from(["no", "on-failure:2", "always", "unless-stopped"])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Wanted, list[Container]]:
    """A deployment, and containers left by another revision of it in whatever state."""
    target, before = wanted(draw(scores())), wanted(draw(scores()))
    source = draw(st.sampled_from([target, before]))
    containers = []
    for container in running_as_wanted(source):
        if draw(st.booleans()):
            started = draw(st.sampled_from([0.0, NOW - 100, NOW - 1]))
            containers.append(
                replace(
                    container,
                    state=draw(st.sampled_from(State)),
                    exit_code=draw(st.sampled_from([0, 1, 137])),
                    started_at=started,
                    finished_at=draw(st.sampled_from([0.0, started, NOW - 50])),
                    restarts=draw(st.integers(0, 2)),
                )
            )
    return target, containers


@pytest.mark.clause("AGT-6", "AGT-7")
@settings(deadline=None)
@given(worlds())
def test_from_any_world_the_wanted_one_is_reached_and_only_then_said(
    world: tuple[Wanted, list[Container]],
):
    target, containers = world
    memory, now = Memory(), NOW
    for turn in range(40):
        result = look(target, containers, memory, now=now, retry=turn % 2 == 0)
        memory = result.memory
        if result.verdict.state is DeploymentState.CONVERGED:
            break
        containers = inits_end(carry_out(result, containers, now), now)
        now += 15
    assert result.verdict.state is DeploymentState.CONVERGED, result
    assert {c.name for c in containers} == {c.name for c in target.containers}
    for item in target.containers:
        found = next(c for c in containers if c.name == item.name)
        assert found.labels[item.hash_label] == item.hash
        ended_well = found.state is State.EXITED and found.exit_code == 0
        assert ended_well if item.role == labels.INIT else ended_well or found.state is State.RUNNING


def inits_end(containers: list[Container], now: float) -> list[Container]:
    return [
        replace(c, state=State.EXITED, finished_at=now + 1, started_at=now, exit_code=0)
        if c.state is State.RUNNING and c.labels[labels.ROLE] == labels.INIT
        else c
        for c in containers
    ]


def carry_out(result: Plan, containers: list[Container], now: float) -> list[Container]:
    """A runtime in which everything works."""
    for step in result.steps:
        match step:
            case Remove(gone, _):
                containers = [c for c in containers if c.id != gone]
            case Create(item):
                assert all(c.name != item.name for c in containers), "its name is still taken"
                made = running_as_wanted(Wanted("u1", "", 1, None, (item,)))[0]
                made = replace(made, id=f"{item.name}@{now}", started_at=now)
                if item.role == labels.INIT:
                    made = replace(made, state=State.EXITED, finished_at=now + 1)
                containers = [*containers, made]
            case Start(again, _) | Unpause(again, _):
                containers = [
                    replace(c, state=State.RUNNING, started_at=now, exit_code=0, restarts=0) if c.id == again else c
                    for c in containers
                ]
    return containers


@settings(deadline=None)
@given(worlds())
def test_an_unfinished_init_keeps_every_step_away_from_the_services(world: tuple[Wanted, list[Container]]):
    target, containers = world
    result = look(target, containers)
    if target.init and any(isinstance(s, Create) and s.wanted.role == labels.INIT for s in result.steps):
        touched = {step.name for step in result.steps if not isinstance(step, Create)}
        assert touched <= {target.init.name}
