"""Rollouts to fleets whose devices are away, slow, repeat themselves, lie and have no idea what time it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devices.models import Device
from rollouts.models import Phase
from simulation import enlisting
from simulation.cast import Knobs
from simulation.device import SimulatedDevice
from simulation.faults import Lie
from tests.integration.simulation.rehearsal import Rehearsal

pytestmark = pytest.mark.django_db

Rehearse = Callable[..., Rehearsal]
EVERYTHING = Knobs(
    offline=0.3,
    offline_seconds=40,
    slow=0.1,
    slow_seconds=0.1,
    lying=0.3,
    lies=(Lie.REVISION, Lie.LABELS),
    duplicate=0.3,
    reorder=0.3,
    clock_off=0.3,
    clock_hours=30,
)


def lies_about_revision(device: SimulatedDevice) -> bool:
    return device.character.lie is Lie.REVISION


@pytest.mark.clause("DEP-11", "DEP-16")
@pytest.mark.case("R1", "R11")
def test_with_all_faults_at_once_exactly_the_honest_devices_converge(rehearse: Rehearse) -> None:
    scene = rehearse(24, EVERYTHING)
    liars = {device.name for device in scene.some(lies_about_revision)}
    honest = {device.name for device in scene.fleet.devices} - liars
    canary = scene.some(lambda device: device.is_offline() and device.name in honest)[0]
    scene.make_canary(canary)
    deployment = scene.apply()
    scene.pass_time(10)
    assert scene.revision(deployment).message.startswith(f"Waiting for canary {canary.name}")

    scene.until(lambda: scene.revision(deployment).converged == len(honest), within=900)
    scene.pass_time(60)
    states = scene.states(deployment)
    assert {name for name, state in states.items() if state == "converged"} == honest
    assert {states[name] for name in liars} == {"released"}
    assert scene.revision(deployment).phase == Phase.RELEASING
    assert scene.fleet.failures == 0
    scene.until(lambda: not enlisting.behind(scene.fleet.acknowledged()), within=60)


@pytest.mark.clause("TSK-1", "DEV-4")
def test_labels_of_others_are_ignored_and_named(rehearse: Rehearse) -> None:
    scene = rehearse(4, Knobs(lying=0.5, lies=(Lie.LABELS,)))
    for device in scene.some(lambda device: device.character.lie is Lie.LABELS):
        row = Device.objects.get(name=device.name)
        assert (row.canary, row.labels["device-id"], row.labels.get("canary")) == (False, device.name, None)
        assert [problem["reason"] for problem in row.problems] == ["LabelIgnored", "LabelIgnored"]


@pytest.mark.clause("DEP-11")
def test_a_canary_that_claims_a_revision_that_it_was_not_told_of_opens_no_gate(rehearse: Rehearse) -> None:
    """Not even when that revision comes: a claim from before it existed proves nothing."""
    scene = rehearse(4, Knobs(lying=0.25, lies=(Lie.REVISION,)))
    (liar,) = scene.some(lies_about_revision)
    scene.make_canary(liar)
    for image in ("registry.example.com/api:1.0", "registry.example.com/api:2.0"):
        deployment = scene.apply(image)
        scene.pass_time(70)
        revision = scene.revision(deployment)
        assert revision.phase == Phase.CANARY
        assert revision.message.startswith(f"Waiting for canary {liar.name}")
        assert set(scene.states(deployment).values()) == {"held", "released"}
    assert {device.name for device in scene.some(lambda device: bool(device.deployments()))} == {liar.name}


def test_a_false_claim_of_convergence_counts_for_its_own_target_only_and_not_before_it_was_told(
    rehearse: Rehearse,
) -> None:
    """Nothing but the device knows its containers; what it claims is believed of this device and of no other."""
    scene = rehearse(6, Knobs(lying=0.5, lies=(Lie.CONVERGED,)))
    liars = scene.some(lambda device: device.character.lie is Lie.CONVERGED)
    honest = scene.some(lambda device: device.character.is_honest)
    scene.make_canary(honest[0])
    deployment = scene.apply()
    scene.until(lambda: scene.revision(deployment).phase == Phase.RELEASING, within=120)
    assert scene.revision(deployment).converged == 1
    scene.until(lambda: scene.revision(deployment).phase == Phase.CONVERGED, within=120)
    assert {device.deployments()[0].state for device in liars} == {"failed"}
    assert {device.deployments()[0].state for device in honest} == {"converged"}
