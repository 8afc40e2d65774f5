"""Many at once on real connections: nothing is lost, doubled or dead-locked (R5, R6, R13, R14)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Count
from django.test import Client

from agent.wire import canonical
from agent.wire.messages import DEPLOYMENT_KIND, DeploymentReport, DeploymentState, Facts, Report
from devices.models import Credential, DesiredHead, DesiredItem, Device
from devices.services import device_forget
from devices.services.tokens import hash_of
from fleet.targeting.models import TargetState
from rollouts import jobs, services
from rollouts.models import Deployment, Observation, Phase, PhaseChange, Revision, Target
from tests.integration.rollouts.together import together
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.case("R14")
@pytest.mark.parametrize("canary", [True, False])
def test_four_evaluations_at_once_freeze_and_release_once(world: World, canary: bool) -> None:
    devices = world.devices([f"edge-{n}" for n in range(50)])
    Device.objects.filter(pk=devices[0].pk).update(canary=canary)
    deployment = world.apply().deployment
    assert deployment is not None
    pk = world.revision(deployment).pk
    assert together(*[lambda: services.revision_evaluate(revision_id=pk)] * 4) == []
    assert Target.objects.count() == 50
    told = 1 if canary else 50
    assert DesiredItem.objects.count() == Target.objects.filter(state=TargetState.RELEASED).count() == told
    assert PhaseChange.objects.count() == 1
    assert set(DesiredHead.objects.filter(version__gt=1).values_list("version", flat=True)) == {2}


@pytest.mark.case("R14")
def test_every_job_twice_at_once(world: World) -> None:
    canary, rest = world.device("edge-1", canary=True), world.devices([f"edge-{n}" for n in range(2, 40)])
    deployment = world.apply().deployment
    assert deployment is not None
    evaluate = lambda: jobs.evaluate_revision(world.revision(deployment).pk)  # noqa: E731
    for job in (evaluate, jobs.sweep, jobs.drain_reports, jobs.count_latecomers):
        assert together(job, job) == []
    world.says(canary, deployment, "converged")
    assert together(jobs.drain_reports, jobs.drain_reports, jobs.sweep, jobs.sweep) == []
    jobs.sweep()
    assert world.revision(deployment).phase == Phase.RELEASING
    for device in rest:
        world.says(device, deployment, "converged")
    batch = lambda: services.drain_deployments(limit=10)  # noqa: E731
    assert together(*[batch] * 6) == []
    jobs.drain_reports()
    assert world.revision(deployment).phase == Phase.CONVERGED
    services.deployment_delete(deployment=deployment, actor=None)
    for device in (canary, *rest):
        world.says(device, deployment, "removed")
    remove = lambda: jobs.evaluate_deployment(deployment.pk)  # noqa: E731
    assert together(jobs.drain_reports, jobs.drain_reports, remove, remove, jobs.sweep) == []
    jobs.sweep()
    assert not Deployment.objects.exists()
    assert not DesiredItem.objects.exists()


@pytest.mark.clause("DEP-9")
@pytest.mark.case("R13")
def test_the_same_new_manifest_from_two_people_is_one_deployment(world: World) -> None:
    outcomes: list[str] = []
    assert together(*[lambda: outcomes.append(world.apply().outcome)] * 4) == []
    assert sorted(outcomes) == ["created", "unchanged", "unchanged", "unchanged"]
    assert Revision.objects.count() == 1


@pytest.mark.clause("DEP-13")
def test_two_changes_at_once_leave_one_running_revision(world: World) -> None:
    world.devices([f"edge-{n}" for n in range(20)])
    deployment = world.rollout()
    images = [f"registry.example.com/api:{n}" for n in range(2, 6)]
    assert together(*[_apply(world, image) for image in images]) == []
    services.sweep()
    assert sorted(Revision.objects.values_list("generation", flat=True)) == [1, 2, 3, 4, 5]
    assert Revision.objects.exclude(phase=Phase.SUPERSEDED).count() == 1
    assert world.revision(deployment).released == 20
    assert {world.told(device, deployment) for device in Device.objects.all()} == {5}


def _apply(world: World, image: str) -> Callable[[], Any]:
    return lambda: world.apply(world.manifest(image=image))


@pytest.mark.case("R6")
def test_large_rollouts_and_the_periodic_checkers_take_locks_in_one_order(world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(600)])
    Device.objects.filter(pk__in=[device.pk for device in devices[::100]]).update(canary=True)
    names = [f"app-{n}" for n in range(4)]
    steps: list[Callable[[], Any]] = [_deploy(world, name) for name in names]
    steps += [lambda: [services.sweep() for _ in range(6)]] * 2
    steps += [services.count_latecomers]
    assert together(*steps) == []
    services.sweep()
    for deployment in Deployment.objects.all():
        for device in devices[::100]:
            world.says(device, deployment, "converged")
    first, second, third, _ = Deployment.objects.order_by("name")
    assert (
        together(
            lambda: services.deployment_delete(deployment=first, actor=None),
            lambda: services.deployment_retarget(deployment=second, actor=None),
            lambda: services.rollout_end(deployment=third, actor=None),
            lambda: [services.drain_deployments(limit=7) for _ in range(6)],
            lambda: [services.sweep() for _ in range(4)],
            lambda: device_forget(device=devices[50], actor=None),
            lambda: device_forget(device=devices[0], actor=None),
        )
        == []
    )
    services.sweep()
    held = Target.objects.filter(state=TargetState.HELD, revision__phase__in=[Phase.SUPERSEDED, Phase.CANCELLED])
    assert not held.exists()
    assert not DesiredItem.objects.values("device", "kind", "key").annotate(n=Count("pk")).filter(n__gt=1).exists()


def _deploy(world: World, name: str) -> Callable[[], Any]:
    def deploy() -> None:
        deployment = world.apply(world.manifest(name)).deployment
        assert deployment is not None
        world.evaluate(deployment)

    return deploy


@pytest.mark.case("R6")
@pytest.mark.parametrize("begun", [True, False])
def test_devices_are_forgotten_while_they_are_released_to(world: World, begun: bool) -> None:
    devices = world.devices([f"edge-{n}" for n in range(150)])
    deployment = world.apply().deployment
    assert deployment is not None
    if begun:
        world.evaluate(deployment)
    for device in devices[:60]:
        world.says(device, deployment, "progressing", "pulling image")
    leaving = devices[::10]
    raised = together(
        lambda: world.evaluate(deployment),
        lambda: [services.drain_deployments(limit=20) for _ in range(3)],
        lambda: [services.drain_deployments(limit=20) for _ in range(3)],
        lambda: [device_forget(device=device, actor=None) for device in leaving[::2]],
        lambda: [device_forget(device=device, actor=None) for device in leaving[1::2]],
    )
    # A set that is frozen with a device that has just gone is frozen again by the next pass.
    assert [error for error in raised if not isinstance(error, IntegrityError)] == []
    services.sweep()
    jobs.drain_reports()
    assert Device.objects.count() == DesiredItem.objects.count() == 135
    states = Counter((row.device_id is None, row.state) for row in world.revision(deployment).targets.all())
    assert states.pop((False, TargetState.RELEASED)) == 135
    assert set(states) <= {(True, TargetState.FAILED)}


@pytest.mark.case("R5")
def test_polls_and_reports_go_on_while_thousands_are_released(world: World) -> None:
    devices = world.devices([f"edge-{n}" for n in range(3000)])
    Credential.objects.bulk_create(
        Credential(device=device, token_hash=hash_of(device.name), created_at=world.now) for device in devices
    )
    deployment = world.apply().deployment
    assert deployment is not None
    released = threading.Event()
    answers: Counter[int] = Counter()

    def release() -> None:
        try:
            world.evaluate(deployment)
        finally:
            released.set()

    def traffic(part: int) -> Callable[[], None]:
        def poll_and_report() -> None:
            for sequence, device in enumerate(devices[part::4], start=1):
                if released.is_set() and sequence > 20:
                    break
                answers[_poll(device).status_code] += 1
                answers[_report(device, deployment, sequence).status_code] += 1

        return poll_and_report

    def drain() -> None:
        while not released.is_set():
            services.drain_deployments(limit=100)

    assert together(release, drain, *[traffic(part) for part in range(4)]) == []
    assert set(answers) == {200}
    assert answers.total() >= 160
    while services.drain_deployments(limit=500):
        pass
    assert Target.objects.filter(state=TargetState.RELEASED).count() == 3000
    assert DesiredItem.objects.filter(kind=DEPLOYMENT_KIND, remove=False).count() == 3000
    assert not DesiredHead.objects.exclude(version=2).exists()
    assert Observation.objects.count() == answers.total() // 2
    assert world.revision(deployment).released == 3000


def _poll(device: Device) -> Any:
    return Client().get("/api/agent/v1/desired", headers={"authorization": f"Bearer {device.name}"})


def _report(device: Device, deployment: Deployment, sequence: int) -> Any:
    said = DeploymentReport(uid=str(deployment.uid), revision=1, state=DeploymentState.PROGRESSING, message="pulling")
    return Client().post(
        "/api/agent/v1/report",
        canonical.encode(Report(sequence=sequence, facts=Facts(), deployments=[said])),
        content_type="application/json",
        headers={"authorization": f"Bearer {device.name}"},
    )


@pytest.mark.case("R13")
def test_the_bell_rings_after_the_commit_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[bool] = []
    monkeypatch.setattr(
        jobs.evaluate_revision,
        "apply_async",
        lambda arguments, **_: rung.append(Revision.objects.filter(pk=arguments[0]).exists()),
    )
    with transaction.atomic():
        world.apply()
        assert rung == []
    assert rung == [True]
