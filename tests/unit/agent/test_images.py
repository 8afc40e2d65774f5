"""Images that the agent fetched go when nothing uses them any more; all others are never touched (AGT-15)."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import msgspec
import pytest

from agent.config import Images
from agent.images import LOOK_SECONDS
from agent.runtime.base import ContainerSpec, Image, Login
from agent.runtime.simulated import SimulatedRuntime
from tests.support.devices import Edge, ManualClock
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import faults

pytestmark = pytest.mark.clause("AGT-15")

DAY = 86_400.0
OLD, NEW = "r.example/api:1", "r.example/api:2"


@pytest.fixture
def pruning(edge: Edge) -> Edge:
    """A device that keeps images for a day, and has replaced one by another."""
    keep_for(edge, DAY)
    edge.control.want("u1", score(service("api", OLD)))
    edge.go()
    edge.control.want("u1", score(service("api", NEW)), revision=2)
    edge.go()
    assert here(edge) == {OLD, NEW}
    return edge


class Twins(SimulatedRuntime):
    """All tags of a repository are the same image."""

    def pull(self, reference: str, login: Login | None = None) -> Image:
        super().pull(reference, login)
        self._saved.images[reference] = hashlib.sha256(reference.partition(":")[0].encode()).hexdigest()
        found = self.image(reference)
        assert found is not None
        return found


@pytest.fixture
def twins(tmp_path: Path, control: FakeControlPlane) -> Edge:
    clock = ManualClock()
    edge = Edge(tmp_path / "state", control, runtime=Twins(clock=clock), clock=clock)
    keep_for(edge, DAY)
    return edge


def use(edge: Edge, *images: str) -> None:
    """The deployment consists of these images from now on."""
    services = [service(f"service-{number}", image) for number, image in enumerate(images)]
    edge.control.want("u1", score(*services), revision=edge.control.version + 1)
    edge.go()


def keep_for(edge: Edge, seconds: float) -> None:
    edge.config = msgspec.structs.replace(edge.config, images=Images(prune_after_seconds=seconds))
    edge.boot()


def here(edge: Edge) -> set[str]:
    return {name for image in edge.runtime.images() for name in image.names}


def let_pass(edge: Edge, days: float) -> None:
    """Look soon, and then every six hours."""
    edge.clock.forward(LOOK_SECONDS)
    edge.go()
    for _ in range(round(days * 4)):
        edge.clock.forward(DAY / 4)
        edge.agent.reconcile()


def test_what_nothing_uses_goes_after_the_grace_time(pruning: Edge, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    let_pass(pruning, 0.75)
    assert here(pruning) == {OLD, NEW}
    let_pass(pruning, 0.25)
    assert here(pruning) == {NEW}
    assert f"was removed, as nothing used it: {OLD}" in caplog.text
    let_pass(pruning, 2)
    assert here(pruning) == {NEW}


def test_zero_keeps_everything(pruning: Edge):
    keep_for(pruning, 0)
    let_pass(pruning, 3)
    assert here(pruning) == {OLD, NEW}


def test_what_was_here_before_is_not_ours(edge: Edge):
    keep_for(edge, DAY)
    edge.runtime.pull("r.example/theirs:1")
    edge.control.want("u1", score(service("api", OLD), service("web", "r.example/theirs:1")))
    edge.go()
    edge.control.want("u1", score(service("api", NEW)), revision=2)
    let_pass(edge, 2)
    assert here(edge) == {"r.example/theirs:1", NEW}


def test_what_is_fetched_under_a_second_name_stays_theirs(twins: Edge):
    twins.runtime.pull("r.example/twin:theirs")
    use(twins, "r.example/twin:ours")
    use(twins, NEW)
    let_pass(twins, 2)
    assert here(twins) == {"r.example/twin:theirs", "r.example/twin:ours", NEW}


def test_what_somebody_gave_another_name_is_not_ours_alone(twins: Edge):
    use(twins, "r.example/twin:ours")
    twins.runtime.pull("r.example/twin:theirs")
    use(twins, NEW)
    let_pass(twins, 2)
    assert here(twins) == {"r.example/twin:theirs", "r.example/twin:ours", NEW}


def test_two_names_that_are_both_ours_go_together(twins: Edge):
    use(twins, "r.example/twin:1", "r.example/twin:2")
    use(twins, NEW)
    let_pass(twins, 2)
    assert here(twins) == {NEW}


def test_a_foreign_container_keeps_an_image(pruning: Edge):
    identity = pruning.runtime.create(ContainerSpec("theirs", OLD, "no"))
    let_pass(pruning, 2)
    assert here(pruning) == {OLD, NEW}
    pruning.runtime.remove(identity)
    let_pass(pruning, 0.75)
    assert here(pruning) == {OLD, NEW}
    let_pass(pruning, 0.25)
    assert here(pruning) == {NEW}


def test_an_image_of_a_desired_document_stays_also_before_its_container_is_there(pruning: Edge):
    faults(pruning).lie = ["*"]
    pruning.control.want("u2", score(service("second", OLD), init=service("never", "r.example/nowhere:1")), name="b")
    faults(pruning).fail_pull = ["*nowhere*"]
    let_pass(pruning, 3)
    assert here(pruning) == {OLD, NEW}


def test_nothing_goes_while_a_definition_is_not_here(pruning: Edge):
    hash_ = pruning.control.want("u2", score(service("second", OLD)), name="b")
    del pruning.control.documents[hash_]
    let_pass(pruning, 3)
    assert here(pruning) == {OLD, NEW}


def test_the_count_goes_on_after_a_restart_and_with_a_clock_that_jumps(pruning: Edge, monkeypatch: pytest.MonkeyPatch):
    let_pass(pruning, 0.5)
    monkeypatch.setattr(pruning.clock, "now", lambda: 4e9)
    pruning.boot()
    let_pass(pruning, 0.25)
    assert here(pruning) == {OLD, NEW}
    let_pass(pruning, 0.25)
    assert here(pruning) == {NEW}


@pytest.mark.clause("AGT-12")
def test_a_runtime_that_fails_costs_time_only(pruning: Edge):
    let_pass(pruning, 0.75)
    faults(pruning).unreachable = True
    let_pass(pruning, 1)
    faults(pruning).unreachable = False
    let_pass(pruning, 0.25)
    assert here(pruning) == {NEW}


def test_a_full_disk_costs_what_was_counted_and_nothing_else(pruning: Edge, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("agent.durable.write", full)
        let_pass(pruning, 1.25)
    assert here(pruning) == {NEW}
