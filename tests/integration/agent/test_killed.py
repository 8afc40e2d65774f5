"""The agent is killed at each step of a pass and started again: it comes to the end that it would have come to.

A step's effect is there or not, so "before" a step is the same for the next life as "after" the one before it: the
table has the moment before the first step, after every step, and during those on which Podman works for a while.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from harness.waiting import wait_until
from tests.support.lives import Write
from tests.support.turnstile import Side, Turnstile
from tests.support.worlds import World, start_world

Row = TypeVar("Row")
BEFORE, DURING, AFTER = Side.BEFORE, Side.DURING, Side.AFTER

STEPS = {
    "rollout": ["create migrate", "start migrate", "create api", "start api", "create web", "start web"],
    "update": [
        "remove migrate", "create migrate", "start migrate", "stop web", "remove web", "create web", "start web",
    ],
    "removal": ["remove migrate", "stop api", "remove api", "stop web", "remove web"],
}  # fmt: skip
LONG_STEPS = {
    "rollout": ["create migrate", "start migrate", "start web"],
    "update": ["remove migrate", "stop web", "create web"],
    "removal": ["stop api", "remove api"],
}
CALLS = {
    "rollout": [("poll", AFTER), ("document", AFTER)],
    "update": [("document", BEFORE), ("poll", BEFORE)],
    "removal": [("report", BEFORE), ("report", AFTER)],
}
WRITES = {
    "rollout": [Write("desired.json", "opened"), Write("documents/*.json", "opened"), Write("reports.json", "opened")],
    "update": [
        Write("desired.json", "written"),
        Write("documents/*.json", "written"),
        Write("reports.json", "written"),
    ],
    "removal": [Write("desired.json", "renamed"), Write("reports.json", "renamed")],
}
POWER = {
    "rollout": [("create migrate", AFTER), ("start api", AFTER)],
    "update": [("start migrate", DURING), ("create web", AFTER)],
    "removal": [("stop api", AFTER), ("remove api", DURING)],
}


def rows(table: Mapping[str, Sequence[Row]]) -> list[tuple[str, Row]]:
    """In an order in which each transition begins where the one before it ended."""
    turns = itertools.zip_longest(*table.values())
    return [(transition, row) for turn in turns for transition, row in zip(table, turn, strict=True) if row is not None]


def steps() -> dict[str, list[tuple[str, Side]]]:
    return {
        transition: [(names[0], BEFORE), *((name, AFTER) for name in names)]
        + [(name, DURING) for name in LONG_STEPS[transition]]
        for transition, names in STEPS.items()
    }


def label(value: object) -> str:
    match value:
        case (str(name), Side() as side):
            return f"{side}-{name}".replace(" ", "-")
        case Write(file, moment):
            return f"{file.partition('/')[0]}-{moment}"
    return str(value)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="fleet-killed-", dir="/tmp") as folder, start_world(Path(folder)) as world:
        yield world


@pytest.fixture(autouse=True)
def tidy(world: World, request: pytest.FixtureRequest) -> Iterator[None]:
    """A row that failed must not fail the next."""
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        world.recover()


def kill_at(world: World, gate: Turnstile, transition: str, point: tuple[str, Side]) -> None:
    """Begin the transition, and see the agent die at this point of it."""
    world.begin(transition)
    world.live()
    gate.arm(*point, world.lives.kill)
    world.want(transition)
    assert gate.struck.wait(15), f"the agent never came to {point[0]}"


@pytest.mark.clause("AGT-3", "AGT-7", "AGT-11", "DEP-14")
@pytest.mark.case("P2", "P3")
@pytest.mark.parametrize(("transition", "step"), rows(steps()), ids=label)
def test_killed_at_a_step_and_started_again(world: World, transition: str, step: tuple[str, Side]):
    world.begin(transition)
    before = world.ids()
    kill_at(world, world.podman_gate, transition, step)
    world.lives.start()
    world.expect(transition)
    if transition == "update":
        assert world.ids()["api"] == before["api"], "what did not change was not touched"


@pytest.mark.clause("AGT-8", "AGT-9")
@pytest.mark.case("R11")
@pytest.mark.parametrize(("transition", "call"), rows(CALLS), ids=label)
def test_killed_while_it_talks_to_the_control_plane(world: World, transition: str, call: tuple[str, Side]):
    kill_at(world, world.control_gate, transition, call)
    world.lives.start()
    world.expect(transition)


@pytest.mark.clause("AGT-8")
@pytest.mark.parametrize(("transition", "write"), rows(WRITES), ids=label)
def test_killed_while_it_writes_a_file(world: World, transition: str, write: Write):
    world.begin(transition)
    world.lives.kill()
    world.want(transition)
    world.lives.start(dies_at=write)
    wait_until(
        lambda: not world.lives.is_alive(), seconds=15, what=f"the agent dies when {write.file} is {write.moment}"
    )
    world.lives.start()
    world.expect(transition)


@pytest.mark.clause("AGT-3", "AGT-7", "AGT-8")
@pytest.mark.case("P2")
@pytest.mark.parametrize(("transition", "step"), rows(POWER), ids=label)
def test_the_power_fails_at_a_step(world: World, transition: str, step: tuple[str, Side]):
    kill_at(world, world.podman_gate, transition, step)
    world.containers.podman.lose_power()
    world.containers.podman.start()
    world.lives.start()
    world.expect(transition)
