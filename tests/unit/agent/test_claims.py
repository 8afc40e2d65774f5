"""Which container names a device's deployments hold."""

from __future__ import annotations

import pytest

from agent.reconcile import labels
from agent.reconcile.claims import Claim, Claims, deployment_of
from agent.reconcile.labels import Owner
from agent.runtime.base import Container, State

OWNER = Owner("device-1", b"k" * 32)


def ghost(name: str = "api", created_at: float = 100.0) -> Container:
    return Container("g" * 64, name, State.GHOST, "image", created_at=created_at)


def labelled(identity: str, name: str = "api", uid: str = "u1", created_at: float = 100.0) -> Container:
    marks = {labels.DEVICE: OWNER.device_uid, labels.UID: uid}
    return Container(identity, name, State.RUNNING, "image", labels=marks, created_at=created_at)


@pytest.mark.clause("AGT-1")
@pytest.mark.case("P1")
@pytest.mark.parametrize(
    ("entry", "holder"),
    [
        (ghost(created_at=100.2), "u1"),
        (ghost(created_at=99.5), "u1"),
        (ghost(created_at=98.0), ""),
        (ghost("other", created_at=100.2), ""),
    ],
    ids=["made after the claim", "clocks read a moment apart", "was there before", "another name"],
)
def test_a_ghost_is_ours_only_when_it_appeared_while_its_name_was_claimed(entry: Container, holder: str):
    claims = Claims()
    claims.take("api", "u1", 100.0)
    assert deployment_of(entry, OWNER, claims) == holder


def test_a_container_that_podman_knows_is_judged_by_its_labels_alone():
    claims = Claims({"api": Claim("u1", 0.0)})
    assert deployment_of(labelled("a", uid="u2"), OWNER, claims) == "u2"
    foreign = Container("a", "api", State.RUNNING, "image", created_at=100.0)
    assert deployment_of(foreign, OWNER, claims) == ""


@pytest.mark.clause("AGT-7")
def test_the_container_that_was_made_is_told_from_one_that_somebody_made_in_its_place():
    claims = Claims()
    claims.take("api", "u1", 100.0)
    ours = labelled("a")
    assert not claims.is_remade(ours), "the agent was killed before it heard the id"
    claims.notice("u1", [ours])
    assert not claims.is_remade(ours)
    assert claims.is_remade(labelled("b"))


def test_an_agent_without_claims_takes_containers_as_it_finds_them():
    claims = Claims()
    claims.notice("u1", [labelled("a", created_at=50.0)])
    assert not claims.is_remade(labelled("a"))
    assert claims.holder(ghost(created_at=50.0)) == "u1"


def test_claims_are_saved_when_they_change_and_end_with_the_containers():
    saved: list[dict[str, Claim]] = []
    claims = Claims(save=lambda news: saved.append(dict(news)))
    claims.take("api", "u1", 100.0)
    claims.take("web", "u1", 101.0)
    claims.take("db", "u2", 102.0)
    claims.notice("u1", [labelled("a")])
    claims.notice("u1", [labelled("a")])
    assert len(saved) == 4
    claims.release("u1", keep=["api"])
    assert saved[-1].keys() == {"api", "db"}
    claims.release("u1")
    claims.release("u1")
    assert saved[-1] == {"db": Claim("u2", 102.0)}
    assert len(saved) == 6
