"""From the inbox into observations: newest wins, in any order (ADR 4); bad rows block nobody (R4, R10)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.wire.messages import DeploymentReport, DeploymentState
from devices.models import ReportInbox
from fleet.core.models import Event
from rollouts import services
from rollouts.models import Observation, Phase
from tests.integration.rollouts.world import STATES, World


def test_a_report_becomes_the_standing(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "progressing", "pulling image")
    world.later(seconds=5)
    assert world.drain() == 1
    assert not ReportInbox.objects.exists()
    seen = Observation.objects.get()
    assert (seen.state, seen.message, seen.images) == ("progressing", "pulling image", {"api": "sha256:1"})
    assert world.revision(deployment).message == "Waiting for edge-1: pulling image"


_words = st.sampled_from(["converged", "failed", "progressing", "absent"])


@pytest.mark.clause("DEP-15")
@given(said=st.lists(_words, min_size=1, max_size=6), data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_out_of_order_and_doubled_reports_end_the_same(world: World, said: list[str], data: st.DataObject) -> None:
    """Whatever way the network mixes them, the last thing said is what counts."""
    with _rolled_back():
        device = world.device("edge-1")
        deployment = world.rollout()
        sent = [(number, words) for number, words in enumerate(said, start=1)]
        arriving = data.draw(st.permutations(sent + data.draw(st.lists(st.sampled_from(sent), max_size=4))))
        for number, words in arriving:
            if words == "absent":
                world.reports(device, [], sequence=number)
            else:
                world.says(device, deployment, words, f"report {number}", sequence=number)
            if data.draw(st.booleans()):
                world.drain()
        world.drain()
        services.sweep()
        expected = {"converged": Phase.CONVERGED, "failed": Phase.FAILED}
        failed_before = world.revision(deployment).phase == Phase.FAILED and said[-1] in ("progressing", "absent")
        assert failed_before or world.revision(deployment).phase == expected.get(said[-1], Phase.RELEASING)
        last = Observation.objects.filter(device=device).first()
        assert (last.state if last else "absent") == said[-1]


def _rolled_back() -> transaction.Atomic:
    return _Rollback()


class _Rollback:
    """Each example of a property starts with an empty fleet."""

    def __enter__(self) -> None:
        self._atomic = transaction.atomic()
        self._atomic.__enter__()

    def __exit__(self, kind, error, trace) -> None:
        transaction.set_rollback(True)
        self._atomic.__exit__(kind, error, trace)


@pytest.mark.case("R4")
@pytest.mark.case("R10")
@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b'{"uid": 1}',
        b'[{"uid": "00000000-0000-0000-0000-000000000001", "revision": 99999999999, "state": "converged"}]',
        b'[{"uid": "00000000-0000-0000-0000-000000000001", "revision": 1, "state": "dancing"}]',
    ],
)
def test_a_bad_row_is_told_and_dropped_and_blocks_nobody(world: World, body: bytes) -> None:
    bad, good = world.devices(["edge-1", "edge-2"])
    deployment = world.rollout()
    world.raw(bad, body)
    world.says(good, deployment, "converged")
    assert world.drain() == 2
    assert world.states(deployment) == {"edge-1": "released", "edge-2": "converged"}
    event = Event.objects.get(reason="InvalidReport")
    assert event.object_name == "edge-1"
    assert not ReportInbox.objects.exists()


def test_hostile_contents_are_stored_or_left_out(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    report = DeploymentReport(
        uid=str(deployment.uid),
        revision=1,
        state=DeploymentState.FAILED,
        message="broken\x00pipe",
        since=1e300,
        images={"a\x00": "\x00"},
    )
    world.reports(device, [report])
    world.drain()
    assert Observation.objects.get().since is None
    assert "broken\ufffdpipe" in world.revision(deployment).message


def test_reports_about_what_is_gone_do_no_harm(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    gone = [DeploymentReport(uid=str(uuid.uuid4()), revision=7, state=state) for state in STATES.values()]
    world.reports(device, gone)
    world.drain()
    assert not Observation.objects.exists()
    assert world.revision(deployment).phase == Phase.RELEASING


@pytest.mark.parametrize("crash_after", ["inbox_take", "_observe", "_confirm_removals", "inbox_done"])
@pytest.mark.case("R10")
def test_a_drain_that_dies_leaves_the_report_in_the_inbox(
    world: World, crash_after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged")
    for _ in _dying(monkeypatch, crash_after):
        with pytest.raises(Killed):
            world.drain()
    assert ReportInbox.objects.count() == 1
    world.drain()
    assert world.revision(deployment).phase == Phase.CONVERGED


class Killed(BaseException):
    """As a SIGKILL would have it: nothing after this point happens."""


def _dying(monkeypatch: pytest.MonkeyPatch, step: str) -> Iterator[None]:
    from rollouts.services import reports  # noqa: PLC0415  (patched below)

    owner = reports.mailbox if step.startswith("inbox") else reports
    real = getattr(owner, step)

    def then_die(*args, **kwargs):
        real(*args, **kwargs)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, then_die)
        yield


@pytest.mark.case("R4")
def test_one_bad_uid_in_a_report_does_not_make_the_others_unsaid(world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    stranger = DeploymentReport(uid="no-uuid\x1b", revision=1, state=DeploymentState.CONVERGED)
    known = DeploymentReport(uid=str(deployment.uid), revision=1, state=DeploymentState.CONVERGED)
    world.reports(device, [stranger, known])
    assert world.drain() == 1
    assert world.states(deployment) == {"edge-1": "converged"}
    event = Event.objects.get(reason="InvalidReport")
    assert (event.object_name, event.message) == ("edge-1", "in report 1, 'no-uuid\\x1b' was passed over: no UUID")
