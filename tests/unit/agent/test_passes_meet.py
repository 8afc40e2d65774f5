"""A pass that comes by while a deployment is worked on: what it wanted is done right after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.wire.manifest import EnvVar
from tests.support.devices import Edge, ManualClock, Watched
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API

Work = Callable[[], None]


class EndsWhileRefusing:
    """The first job ends at the very moment in which the second is refused because of it; then all are done at once."""

    def __init__(self) -> None:
        self._first: tuple[Work, Work] | None = None
        self._refused = 0

    def submit(self, name: str, job: Work, after: Work) -> bool:
        if self._first is None:
            self._first = job, after
            return True
        if not self._refused:
            self._refused += 1
            for step in self._first:
                step()
            return False
        job()
        after()
        return True


@pytest.mark.clause("AGT-7", "AGT-10")
def test_what_a_refused_pass_wanted_is_done_at_once_although_the_work_ended_in_between(
    tmp_path: Path, control: FakeControlPlane
) -> None:
    runtime = Watched(ManualClock())
    edge = Edge(tmp_path / "state", control, runtime=runtime, clock=runtime.clock, workers=EndsWhileRefusing())
    control.want("u1", score(service("api", API.image, env=[EnvVar("MOTTO", "old")])), revision=1)
    edge.go()
    control.want("u1", score(service("api", API.image, env=[EnvVar("MOTTO", "new")])), revision=2)
    edge.go()
    assert runtime.env("api") == {"MOTTO": "old"}
    edge.agent.reconcile(retry=False, only=edge.agent.reconciler.due())
    assert runtime.env("api") == {"MOTTO": "new"}
