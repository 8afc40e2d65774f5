"""An agent that starts with a spoilt state folder, first without its control plane: what runs is never touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane, score, service

FILES = ["desired.json", "documents/*.json", "reports.json", "claims.json", "images.json", "identity.json"]
SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half of it": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "of another device": lambda data: (
        data.replace(b"-1", b"-2").replace(b'"u1"', b'"u2"').replace(b'_uid":"', b'_uid":"not-')
    ),
    "of a later agent": lambda data: data.replace(b'"format":1', b'"format":7').replace(b'"revision":', b'"version":'),
    "a folder": lambda data: b"",
}


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(SPOILT[how](data))


@pytest.mark.clause("AGT-8")
@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("file", FILES)
def test_whatever_became_of_a_file_containers_stay_and_the_rest_heals(
    edge: Edge, control: FakeControlPlane, file: str, how: str
):
    control.want("u1", score(service("api", "r.example/api:1"), init=service("migrate", "r.example/migrate:1")))
    edge.go()
    edge.settle()
    assert control.says("u1", "converged")
    before = {container.id: container.started_at for container in edge.runtime.containers()}
    (path,) = edge.config.state_dir.glob(file)
    spoil(path, how)
    control.refuse_with = 503
    edge.boot()
    for _ in range(3):
        edge.engine.network()
        edge.engine.local()
        edge.clock.forward(30)
    assert {container.id: container.started_at for container in edge.runtime.containers()} == before
    control.refuse_with = 0
    edge.until(
        lambda: control.reports[-1].sent_at > edge.clock.now() - 30 and control.says("u1", "converged"), within=900
    )
    assert {container.id: container.started_at for container in edge.runtime.containers()} == before
    reasons = {problem.reason for problem in control.reports[-1].problems}
    assert reasons & {"StateFileSetAside", "StateFileUnreadable", "StateNotSaved"}, "a person learns of it"
