"""A document that is replaced in the moment between the poll and its fetch."""

from __future__ import annotations

from typing import Any

import pytest

from agent.control import ControlPlane
from agent.runtime.base import State
from agent.wire.messages import DeploymentState
from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API, names


class JustReplaced(ControlPlane):
    """Applies the second revision while the device is on its way to the document of the first."""

    def __init__(self, fake: FakeControlPlane) -> None:
        super().__init__(fake.url, credential=lambda: fake.credential)
        self._fake = fake

    def document(self, hash_: str, *arguments: Any) -> Any:
        if self._fake.version == 1:
            del self._fake.documents[hash_]
            self._fake.want("u1", score(service("api", "r.example/api:2")), revision=2)
        return super().document(hash_, *arguments)


@pytest.mark.clause("DEP-13")
@pytest.mark.case("R15")
def test_the_newer_document_is_fetched_at_once_not_a_poll_later(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API))
    edge.agent.control = JustReplaced(control)
    edge.agent.poll()
    edge.agent.reconcile()
    edge.agent.report()
    said = control.last("u1")
    assert (said.state, said.revision) == (DeploymentState.PROGRESSING, 2)
    assert "is not here" not in said.message


@pytest.mark.clause("AGT-7", "AGT-8")
def test_what_runs_is_looked_after_although_the_newer_document_cannot_be_fetched(edge: Edge, control: FakeControlPlane):
    """The connection may break right after the poll, and stay away for days."""
    control.want("u1", score(API))
    edge.go()
    new = control.want("u1", score(service("api", "r.example/api:2")), revision=2)
    document = control.documents.pop(new)
    edge.agent.poll()
    (api,) = edge.runtime.containers()
    edge.runtime.remove(api.id)
    edge.settle()
    assert names(edge) == {"api": State.RUNNING}
    (problem,) = control.reports[-1].problems
    assert problem.message.startswith("a definition is not here: ")

    control.documents[new] = document
    edge.go()
    edge.settle()
    said = control.last("u1")
    assert (said.state, said.revision) == (DeploymentState.CONVERGED, 2)
    assert control.reports[-1].problems == []
