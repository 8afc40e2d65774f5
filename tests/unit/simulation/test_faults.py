"""Each fault on the agent's own HTTP client, and any of them around any other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agent.control import ControlPlane, Unreachable
from agent.wire.messages import DeploymentReport, DeploymentState, Facts, Report
from simulation.faults import (
    LIES,
    REPORT,
    ClockOff,
    Duplicating,
    Layer,
    Lie,
    Lying,
    Reordering,
    Slow,
    Unplugged,
)
from simulation.meter import PUT_OFF, Meter, Metered
from tests.support.devices import ManualClock
from tests.support.fake_control import FakeControlPlane


@pytest.fixture
def fake() -> Iterator[FakeControlPlane]:
    with FakeControlPlane() as control:
        yield control


@pytest.fixture
def real(fake: FakeControlPlane) -> ControlPlane:
    return ControlPlane(fake.url, credential=lambda: fake.credential)


def a_report(sequence: int) -> Report:
    state = DeploymentReport(uid="u1", revision=3, state=DeploymentState.FAILED, message="broken")
    return Report(sequence=sequence, facts=Facts(labels={"role": "analyzer"}), deployments=[state])


def paths(fake: FakeControlPlane) -> list[str]:
    return [path.rpartition("/")[2] for path, _status in fake.calls]


def test_who_is_unplugged_reaches_nobody(fake: FakeControlPlane, real: ControlPlane) -> None:
    is_away = True
    control = Unplugged(real, lambda: is_away)
    with pytest.raises(Unreachable, match="the simulated network is down"):
        control.desired("")
    assert not fake.calls
    is_away = False
    assert control.desired("") is not None


def test_who_is_slow_waits_before_every_request(fake: FakeControlPlane, real: ControlPlane) -> None:
    waited: list[float] = []
    control = Slow(real, 2.5, waited.append)
    control.desired("")
    control.report(a_report(1))
    assert waited == [2.5, 2.5]


def test_a_report_arrives_twice_and_is_answered_once(fake: FakeControlPlane, real: ControlPlane) -> None:
    control = Duplicating(real)
    control.desired("")
    assert control.report(a_report(1)).sequence == 1
    assert paths(fake) == ["desired", "report", "report"]


class Noting(Layer):
    """Notes which reports come by."""

    def __init__(self, inner: ControlPlane) -> None:
        super().__init__(inner)
        self.arrived: list[int] = []

    def _call(self, method: str, path: str, **options: Any) -> Any:
        if path == REPORT:
            self.arrived.append(options["body"].sequence)
        return super()._call(method, path, **options)


def test_an_old_report_arrives_after_the_new_one(real: ControlPlane) -> None:
    network = Noting(real)
    control = Reordering(network)
    assert [control.report(a_report(number)).sequence for number in (1, 2, 3)] == [1, 2, 3]
    assert network.arrived == [1, 2, 1, 3, 2]


def test_lies_change_what_is_said_and_nothing_else() -> None:
    told = {lie: LIES[lie](a_report(5)) for lie in Lie}
    (converged,) = told[Lie.CONVERGED].deployments
    assert (converged.state, converged.revision, converged.message) == (DeploymentState.CONVERGED, 3, "")
    (other,) = told[Lie.REVISION].deployments
    assert (other.state, other.revision) == (DeploymentState.CONVERGED, 4)
    assert told[Lie.LABELS].facts.labels == {"role": "analyzer", "canary": "true", "device-id": "somebody-else"}
    assert told[Lie.LABELS].deployments == a_report(5).deployments
    assert {report.sequence for report in told.values()} == {5}


def test_layers_work_in_any_order(fake: FakeControlPlane, real: ControlPlane) -> None:
    control = Duplicating(Lying(Unplugged(Reordering(real), lambda: False), LIES[Lie.CONVERGED]))
    control.report(a_report(1))
    control.report(a_report(2))
    assert fake.last("u1").state is DeploymentState.CONVERGED
    assert [report.sequence for report in fake.reports] == [1, 2]


def test_a_wrong_clock_keeps_its_intervals() -> None:
    clock = ManualClock(now=1000.0)
    off = ClockOff(clock, -3600)
    assert (off.now(), off.monotonic()) == (-2600.0, 1000.0)


@pytest.mark.case("E6")
def test_requests_are_measured_and_those_put_off_are_no_errors(fake: FakeControlPlane) -> None:
    meter = Meter()
    control = Metered(fake.url, meter, credential=lambda: fake.credential)
    control.desired("")
    fake.refuse_with, fake.retry_after = 503, "5"
    with pytest.raises(Exception, match="503"):
        control.report(a_report(1))
    fake.refuse_with, fake.retry_after = 400, ""
    with pytest.raises(Exception, match="400"):
        control.report(a_report(2))
    assert {kind: len(taken) for kind, taken in meter.seconds.items()} == {"poll": 1, "report": 2}
    assert (meter.requests, meter.errors(), meter.refusals[PUT_OFF]) == (3, 1, 1)
    assert meter.quantile("poll", 1) >= meter.quantile("poll", 0.5) > 0
