"""What tags stand for (DEP-18)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.manifest import EnvVar, PodmanService, PodmanV0
from rollouts.images import Pins, Proof, carried_over, digests, expected, open_tags, resolve, standings

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
TAG = "registry.example.com/api:1.0"
PINNED: Pins = {TAG: {"digest": A, "device": "edge-1", "note": ""}}


def score(*services: PodmanService, init: PodmanService | None = None) -> PodmanV0:
    return PodmanV0(services=list(services), init_container=init)


def api(image: str = TAG, name: str = "api", **more: str) -> PodmanService:
    return PodmanService(name=name, image=image, env=[EnvVar(key, value) for key, value in more.items()])


@pytest.mark.clause("DEP-18")
def test_the_first_proof_with_a_digest_resolves_a_tag() -> None:
    proofs = [Proof("edge-1", {}), Proof("edge-2", {"api": A}), Proof("edge-3", {"api": B})]
    assert resolve(score(api()), {}, proofs) == {TAG: {"digest": A, "device": "edge-2", "note": ""}}


@pytest.mark.clause("DEP-18")
def test_what_is_pinned_is_never_pinned_again() -> None:
    assert resolve(score(api()), PINNED, [Proof("edge-3", {"api": B})]) == {}


@pytest.mark.clause("DEP-18")
@pytest.mark.parametrize("image", [f"registry.example.com/api@{A}", f"registry.example.com/api:1.0@{A}"])
def test_a_digest_in_the_score_needs_no_proof(image: str) -> None:
    assert open_tags(score(api(image)), {}) == []
    assert standings(score(api(image)), {}) == []


@pytest.mark.clause("DEP-18")
def test_what_was_built_on_the_device_is_nobody_elses() -> None:
    here, registry = "localhost/api:1", "localhost:5000/api:1"
    assert open_tags(score(api(here), api(registry, "web")), {}) == [registry]
    assert [each.note for each in standings(score(api(here)), {})] == [
        "no registry has it, so each device runs its own"
    ]


@pytest.mark.clause("DEP-18")
@pytest.mark.parametrize(
    "said", ["", "sha256:1", f"evil.example/api@{A}", A.upper(), A + "\n", "sha512:" + "a" * 64, f"{A} --privileged"]
)
def test_a_device_can_make_others_run_a_digest_and_nothing_else(said: str) -> None:
    assert resolve(score(api()), {}, [Proof("edge-1", {"api": said})]) == {}


@pytest.mark.clause("DEP-18")
def test_a_tag_that_moved_between_two_pulls_stands_for_what_the_first_service_runs() -> None:
    wanted = score(api(name="web"), api(), init=api(name="migrate"))
    (pin,) = resolve(wanted, {}, [Proof("edge-1", {"migrate": B, "api": B, "web": A})]).values()
    assert pin == {
        "digest": A,
        "device": "edge-1",
        "note": "containers of edge-1 ran different digests of it; that of web counts",
    }


@pytest.mark.clause("DEP-9", "DEP-18")
def test_the_next_revision_begins_with_the_pins_of_containers_that_stay() -> None:
    before = score(api(), api("registry.example.com/web:1", "web"))
    pins = PINNED | {"registry.example.com/web:1": {"digest": B, "device": "edge-1", "note": ""}}
    assert carried_over(before, before, pins) == pins
    changed = score(api(MOTTO="new"), api("registry.example.com/web:1", "web"))
    assert list(carried_over(before, changed, pins)) == ["registry.example.com/web:1"]
    assert carried_over(before, score(api("registry.example.com/api:2.0")), pins) == {}


@pytest.mark.clause("DEP-18")
@given(st.lists(st.dictionaries(st.sampled_from(["api", "web"]), st.sampled_from([A, B, "", "x"])), max_size=4))
def test_pins_only_grow_and_converged_devices_agree_with_them(said: list[dict[str, str]]) -> None:
    wanted = score(api(), api("registry.example.com/web:1", "web"))
    pins: Pins = {}
    for number, images in enumerate(said):
        before = dict(pins)
        pins = {**pins, **resolve(wanted, pins, [Proof(f"edge-{number}", images)])}
        assert before.items() <= pins.items()
        assert expected(wanted, pins) == {
            name: digests(pins)[tag]
            for name, tag in (("api", TAG), ("web", "registry.example.com/web:1"))
            if tag in pins
        }
