"""What people and programs are shown (DEP-15, DEP-16)."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.models import Connectivity
from fleet.targeting.models import TargetState
from rollouts import selectors, services
from rollouts.models import DELETING, PHASE_COLOURS, Deployment, Phase
from tests.integration.rollouts.world import World


@pytest.mark.clause("DEP-15")
def test_status_has_phase_counts_conditions_and_unfinished_targets(world: World) -> None:
    first, second, third = world.devices(["edge-1", "edge-2", "edge-3"])
    deployment = world.rollout()
    world.goes(third, Connectivity.OFFLINE)
    world.says(first, deployment, "converged")
    world.says(second, deployment, "failed", "no space left")
    world.drain()
    status = selectors.deployment_status(deployment)
    assert status["phase"] == Phase.RELEASING
    assert status["counts"] == {"matched": 3, "released": 3, "converged": 1, "failed": 1, "offline": 1}
    assert status["observedGeneration"] == 1
    assert status["message"] == (
        "Waiting for 2 of 3 devices: edge-2 (failed: no space left), edge-3 (offline since 14:00 UTC)"
    )
    assert [(row["device"], row["state"], row["message"]) for row in status["targets"]] == [
        ("edge-2", "failed", "no space left"),
        ("edge-3", "released", "offline since 14:00 UTC"),
    ]
    assert status["targets"][0]["images"] == {"api": "sha256:1"}
    assert {row["type"]: row["status"] for row in status["conditions"]} == {
        "Ready": "False",
        "Progressing": "True",
        "Degraded": "True",
        "TargetsFrozen": "True",
        "GroupSourceMissing": "False",
        "ImagesResolved": "False",
    }


@pytest.mark.clause("DEP-15")
def test_observed_generation_follows_the_evaluation(world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    world.apply(world.manifest(image="registry.example.com/api:2.0"))
    deployment.refresh_from_db(fields=["generation"])
    assert selectors.deployment_status(deployment)["observedGeneration"] == 1
    world.evaluate(deployment)
    assert selectors.deployment_status(deployment)["observedGeneration"] == 2


@pytest.mark.clause("DEP-15")
def test_a_status_lists_fifty_targets_and_counts_the_others(world: World) -> None:
    world.devices([f"edge-{n}" for n in range(60)])
    status = selectors.deployment_status(world.rollout())
    assert (len(status["targets"]), status["targetsOmitted"]) == (50, 10)


@pytest.mark.clause("DEP-16")
def test_lists_show_the_same_sentence_and_take_one_query(world: World) -> None:
    world.device("edge-1", canary=True)
    for number in range(5):
        world.rollout(world.manifest(f"app-{number}"))
    going = Deployment.objects.get(name="app-0")
    services.deployment_delete(deployment=going, actor=None)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        rows = {row.name: row for row in selectors.deployment_list()}
    assert len(queries) == 1
    for name, row in rows.items():
        status = selectors.deployment_status(Deployment.objects.get(name=name))
        assert (row.phase, row.message) == (status["phase"], status["message"])
    assert rows["app-0"].phase == DELETING
    assert rows["app-1"].phase == Phase.CANARY
    assert list(selectors.deployment_list().filter(phase=DELETING)) == [rows["app-0"]]
    assert set(PHASE_COLOURS) == {*Phase.values, DELETING}


@pytest.mark.clause("DEP-15")
def test_held_and_ended_targets_say_what_they_are(world: World) -> None:
    world.device("edge-1", canary=True)
    rest = world.device("edge-2")
    deployment = world.rollout()
    assert selectors.target_row(_row(world, deployment, rest.name))["message"] == "waits for the canaries"
    services.rollout_end(deployment=deployment, actor=None)
    row = selectors.target_row(_row(world, deployment, rest.name))
    assert (row["state"], row["message"]) == (TargetState.ENDED, "the rollout ended before this device was told")


def _row(world: World, deployment: Deployment, name: str):
    return selectors.targets_of(world.revision(deployment)).get(device_name=name)
