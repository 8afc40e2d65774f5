"""Ten thousand targets are a handful of statements (issue 2's speed section)."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.models import ReportInbox
from rollouts.models import Observation, Phase
from rollouts.services.reports import reports_drain
from tests.integration.rollouts.world import World

FEW, MANY = 200, 2000


def _release(world: World, name: str, count: int) -> int:
    """Statements of a freeze and release to so many devices."""
    world.devices([f"{name}-{n}" for n in range(count)], role=name)
    deployment = world.apply(world.manifest(name, role=name)).deployment
    assert deployment is not None
    with CaptureQueriesContext(connection) as queries:
        world.evaluate(deployment)
    assert world.revision(deployment).released == count
    return len(queries)


def test_statements_of_a_release_grow_with_batches_only(world: World) -> None:
    batches = MANY * 12 // connection.features.max_query_params if connection.features.max_query_params else 1
    assert _release(world, "many", MANY) - _release(world, "few", FEW) <= 4 * (batches + 1)


def test_statements_of_an_evaluation_do_not_depend_on_targets(world: World) -> None:
    taken = []
    for name, count in (("few", FEW), ("many", MANY)):
        devices = world.devices([f"{name}-{n}" for n in range(count)], role=name)
        deployment = world.rollout(world.manifest(name, role=name))
        Observation.objects.bulk_create(
            Observation(
                device=device,
                deployment_uid=deployment.uid,
                revision=1,
                state="failed" if number % 3 else "converged",
                message=f"words of {number}",
                reported_at=world.now,
            )
            for number, device in enumerate(devices)
        )
        with CaptureQueriesContext(connection) as queries:
            world.evaluate(deployment)
        taken.append(len(queries))
        assert world.revision(deployment).phase == Phase.FAILED
    assert taken[0] == taken[1]


def test_statements_of_a_drain_do_not_depend_on_reports(world: World) -> None:
    taken = []
    for name, count in (("few", 20), ("many", 100)):
        devices = world.devices([f"{name}-{n}" for n in range(count)], role=name)
        deployment = world.rollout(world.manifest(name, role=name))
        for words in ("progressing", "converged"):
            for device in devices:
                world.says(device, deployment, words)
            with CaptureQueriesContext(connection) as queries:
                reports_drain(limit=1000)
            taken.append(len(queries))
    assert taken[:2] == taken[2:]
    assert not ReportInbox.objects.exists()
