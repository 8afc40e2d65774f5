"""A tag is resolved once per revision: every device runs the digest that was proven first (DEP-18)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.models import DesiredHead, Device
from fleet.core.models import Event
from rollouts import selectors, services
from rollouts.models import Deployment, Phase, Revision
from rollouts.services.reports import reports_drain
from tests.integration.rollouts.together import together
from tests.integration.rollouts.world import World

TAG = "registry.example.com/api:1.0"
A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def pinned(world: World, device: Device, deployment: Deployment) -> dict[str, str]:
    return world.document(device, deployment).images


def condition(world: World, deployment: Deployment) -> dict[str, Any]:
    found = world.revision(deployment).conditions
    return next(each for each in found if each["type"] == "ImagesResolved")


@pytest.mark.clause("DEP-18")
@pytest.mark.database
def test_the_others_are_told_the_digest_that_the_canary_proved(world: World) -> None:
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    assert pinned(world, canary, deployment) == {}
    assert condition(world, deployment)["reason"] == "NothingProven"
    world.says(canary, deployment, "converged", images={"api": A})
    world.drain()
    assert pinned(world, rest, deployment) == {TAG: A}
    assert pinned(world, canary, deployment) == {TAG: A}
    assert condition(world, deployment)["message"] == f"{TAG} is {A}, proven by edge-1"
    assert Event.objects.get(reason="Resolved").message == f"image {TAG} resolved to {A} by edge-1"
    assert selectors.deployment_status(deployment)["images"] == [
        {"reference": TAG, "digest": A, "provenBy": "edge-1", "note": ""}
    ]


@pytest.mark.clause("DEP-18")
@pytest.mark.database
def test_a_canary_that_converged_on_another_digest_keeps_the_gate_shut_until_it_runs_the_first(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    rest = world.device("edge-3")
    deployment = world.rollout()
    world.says(first, deployment, "converged", images={"api": A})
    world.says(second, deployment, "converged", images={"api": B})  # the tag moved meanwhile
    world.drain()
    assert pinned(world, second, deployment) == {TAG: A}
    assert world.told(rest, deployment) is None
    revision = world.revision(deployment)
    assert (revision.phase, revision.converged) == (Phase.CANARY, 1)
    assert revision.message == (
        "Waiting for canary edge-2: runs another digest of a tag than the one that was proven first, "
        "and takes that one next"
    )
    world.says(second, deployment, "converged", images={"api": A})
    world.drain()
    assert pinned(world, rest, deployment) == {TAG: A}


@pytest.mark.clause("DEP-18")
@pytest.mark.parametrize("name", ["0", "123", "1_0", "api-1.0_x", "null"])
@pytest.mark.database
def test_a_container_may_have_a_number_for_a_name(world: World, name: str) -> None:
    first, second = world.devices(["edge-1", "edge-2"], canary=True)
    manifest = world.manifest()
    manifest["spec"]["score"]["data"]["services"][0]["name"] = name
    deployment = world.rollout(manifest)
    world.says(first, deployment, "converged", images={name: A})
    world.says(second, deployment, "converged", images={name: B})
    world.drain()
    assert world.states(deployment) == {"edge-1": "converged", "edge-2": "released"}
    world.says(second, deployment, "converged", images={name: A})
    world.drain()
    assert world.revision(deployment).phase == Phase.CONVERGED


@pytest.mark.clause("DEP-18")
def test_without_canaries_the_first_of_the_released_devices_decides_for_all(world: World) -> None:
    first, second, third = world.devices(["edge-1", "edge-2", "edge-3"])
    deployment = world.rollout()
    world.says(second, deployment, "converged", images={"api": B})
    world.later(seconds=1)
    world.says(first, deployment, "converged", images={"api": A})
    world.drain()
    assert {str(pinned(world, each, deployment)) for each in (first, second, third)} == {str({TAG: B})}
    assert world.states(deployment) == {"edge-1": "released", "edge-2": "converged", "edge-3": "released"}


@pytest.mark.clause("DEP-18")
def test_a_pin_stays_whatever_is_reported_later(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"])
    deployment = world.rollout()
    world.says(first, deployment, "converged", images={"api": A})
    world.drain()
    world.says(second, deployment, "converged", images={"api": B})
    world.says(first, deployment, "progressing")
    world.drain()
    services.sweep()
    assert pinned(world, second, deployment) == {TAG: A}
    assert world.states(deployment) == {"edge-1": "released", "edge-2": "released"}


@pytest.mark.clause("DEP-18")
def test_who_has_the_pinned_document_is_not_told_again(world: World) -> None:
    canary = world.device("edge-1", canary=True)
    deployment = world.rollout()
    world.says(canary, deployment, "converged", images={"api": A})
    world.drain()
    version = DesiredHead.objects.get(device=canary).version
    world.says(canary, deployment, "converged", images={"api": A})
    world.drain()
    services.sweep()
    assert DesiredHead.objects.get(device=canary).version == version
    assert Event.objects.filter(reason="Resolved").count() == 1


@pytest.mark.clause("DEP-18")
def test_a_device_without_a_digest_decides_nothing_and_that_is_said(world: World) -> None:
    canary, rest = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    world.says(canary, deployment, "converged", images={})
    world.drain()
    assert pinned(world, rest, deployment) == {}
    assert condition(world, deployment)["reason"] == "NoDigest"
    world.says(rest, deployment, "converged", images={"api": B})
    world.drain()
    assert pinned(world, canary, deployment) == {TAG: B}


@pytest.mark.clause("DEP-18")
def test_a_spec_of_digests_costs_nothing_and_says_nothing(world: World) -> None:
    taken = {}
    for name, image in (("tagged", TAG), ("exact", f"registry.example.com/api@{A}")):
        device = world.device(name, role=name)
        deployment = world.rollout(world.manifest(name, image=image, role=name))
        world.says(device, deployment, "converged", images={name: A})
        services.drain_deployments(limit=10)
        with CaptureQueriesContext(connection) as queries:
            world.evaluate(deployment)
        taken[name] = len(queries)
    assert taken["exact"] == taken["tagged"]  # nor does what is resolved
    exact = Deployment.objects.get(name="exact")
    assert not [each for each in world.revision(exact).conditions if each["type"] == "ImagesResolved"]
    assert selectors.deployment_status(exact)["images"] == []


@pytest.mark.clause("DEP-9", "DEP-18")
def test_retarget_keeps_the_digest_so_that_nobody_restarts(world: World) -> None:
    first = world.device("edge-1")
    deployment = world.rollout()
    world.says(first, deployment, "converged", images={"api": A})
    world.drain()
    late = world.device("edge-2")
    services.deployment_retarget(deployment=deployment, actor=None)
    world.evaluate(deployment)
    assert [pinned(world, each, deployment) for each in (first, late)] == [{TAG: A}] * 2
    world.says(late, deployment, "converged", images={"api": B})  # the tag has moved, the pin has not
    world.drain()
    assert world.states(deployment)["edge-2"] == "released"


@pytest.mark.clause("DEP-18")
def test_a_changed_container_is_resolved_anew(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged", images={"api": A})
    world.drain()
    manifest = world.manifest()
    manifest["spec"]["score"]["data"]["services"][0]["env"] = [{"name": "MOTTO", "value": "new"}]
    world.rollout(manifest)
    assert pinned(world, device, deployment) == {}
    world.says(device, deployment, "converged", images={"api": B})
    world.drain()
    assert pinned(world, device, deployment) == {TAG: B}


@pytest.mark.clause("DEP-18")
def test_statements_of_a_pin_do_not_depend_on_targets(world: World) -> None:
    taken = []
    for name, count in (("few", 6), ("many", 60)):
        devices = world.devices([f"{name}-{n}" for n in range(count)], role=name)
        deployment = world.rollout(world.manifest(name, role=name))
        for number, device in enumerate(devices[:5]):
            world.says(device, deployment, "converged", images={name: A if number else B})
        reports_drain(limit=1000)
        with CaptureQueriesContext(connection) as queries:
            world.evaluate(deployment)
        taken.append(len(queries))
        assert world.revision(deployment).converged == 1
    assert taken[0] == taken[1]


@pytest.mark.clause("DEP-18")
@pytest.mark.case("R6")
@pytest.mark.django_db(transaction=True)
def test_proofs_at_once_make_one_pin_while_everything_else_goes_on(world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(60)])
    deployment = world.rollout()
    for number, device in enumerate(devices):
        world.says(device, deployment, "converged", images={"api": "sha256:" + f"{number % 7}" * 64})
    pk = world.revision(deployment).pk
    drain = lambda: [services.drain_deployments(limit=7) for _ in range(6)]  # noqa: E731
    evaluate = lambda: services.revision_evaluate(revision_id=pk)  # noqa: E731
    other = lambda: world.evaluate(world.apply(world.manifest("other")).deployment)  # type: ignore[arg-type]  # noqa: E731
    assert together(drain, drain, evaluate, evaluate, services.sweep, other) == []
    services.sweep()
    pins = Revision.objects.get(pk=pk).pins
    assert {str(pinned(world, each, deployment)) for each in devices} == {str({TAG: pins[TAG]["digest"]})}
    assert Event.objects.filter(reason="Resolved").count() == 1
    assert world.revision(deployment).converged == sum(f"{n % 7}" * 64 in pins[TAG]["digest"] for n in range(60))


@pytest.mark.clause("DEP-18", "DEP-16")
def test_the_admin_says_what_a_tag_stands_for(world: World, admin_client: Any) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    page = f"/admin/rollouts/deployment/{deployment.pk}/change/"
    assert "not resolved yet: the first device that converges decides" in admin_client.get(page).content.decode()
    world.says(device, deployment, "converged", images={"api": A})
    world.drain()
    text = admin_client.get(page).content.decode()
    assert TAG in text
    assert A in text
    assert "proven by edge-1" in text
