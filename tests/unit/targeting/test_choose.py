"""Who is chosen, and the reasons that people read (DEP-6, DEP-7, DEP-10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.manifest import LabelSelector, SelectorRequirement
from fleet.targeting.policy import MAX_REASON_CHARS, Choice, choose, why_nobody


@dataclass(frozen=True)
class Device:
    id: int
    name: str
    labels: dict[str, str]
    canary: bool = False
    uid: UUID = field(default_factory=uuid4)


ANALYZER = LabelSelector(matchLabels={"role": "analyzer"})
DEVICES = [Device(1, "edge-1", {"role": "analyzer"}), Device(2, "edge-2", {"role": "camera"})]


@pytest.mark.clause("DEP-7")
def test_labels_and_a_group_are_both_needed() -> None:
    both = choose(ANALYZER, ["lab"], DEVICES, {"lab": {"edge-1", "edge-2"}})
    assert [chosen.device.name for chosen in both.chosen] == ["edge-1"]
    assert choose(ANALYZER, ["lab"], DEVICES, {"lab": {"edge-2"}}).chosen == []


@pytest.mark.clause("DEP-7")
@pytest.mark.parametrize("membership", [{}, {"lab": set()}, {"other": {"edge-1"}}])
def test_nobody_matches_without_a_membership(membership: dict[str, set[str]]) -> None:
    assert choose(ANALYZER, ["lab"], DEVICES, membership).chosen == []


@pytest.mark.clause("DEP-7")
def test_no_allowed_group_matches_nothing() -> None:
    assert choose(ANALYZER, [], DEVICES, {"lab": {"edge-1"}}).chosen == []


@pytest.mark.clause("DEP-7")
@given(
    st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from(["edge-1", "edge-2"]))),
    st.sets(st.sampled_from("abc")),
)
def test_whoever_is_chosen_is_in_an_allowed_group(membership: dict[str, set[str]], allowed: set[str]) -> None:
    everybody = LabelSelector(matchExpressions=[SelectorRequirement(key="role", operator="Exists")])
    for chosen in choose(everybody, allowed, DEVICES, membership).chosen:
        assert any(chosen.device.name in membership.get(group, ()) for group in allowed)


@pytest.mark.clause("DEP-10")
def test_the_reason_names_selector_and_groups() -> None:
    (chosen,) = choose(ANALYZER, ["lab", "field"], DEVICES, {"lab": {"edge-1"}, "field": {"edge-1"}}).chosen
    assert chosen.reason == "has the labels role=analyzer; is in groups field, lab"


@pytest.mark.clause("DEP-10")
def test_a_very_long_reason_fits_its_column() -> None:
    wide = LabelSelector(matchLabels={f"{'k' * 60}{n}": "v" for n in range(40)})
    device = Device(1, "edge-1", dict(wide.matchLabels))
    (chosen,) = choose(wide, ["lab"], [device], {"lab": {"edge-1"}}).chosen
    assert len(chosen.reason) == MAX_REASON_CHARS


@pytest.mark.clause("DEP-16")
@pytest.mark.parametrize(
    ("groups", "labelled", "sentence"),
    [
        ([], 3, "allowedGroups is empty, so no device matches; name at least one group in spec.allowedGroups"),
        (["lab"], 0, "No device has the labels role=analyzer"),
        (["lab"], 1, "1 device has the labels, it is not in the group lab"),
        (["lab", "field"], 4, "4 devices have the labels, none is in the groups field, lab"),
    ],
)
def test_an_empty_choice_says_why(groups: list[str], labelled: int, sentence: str) -> None:
    assert why_nobody(ANALYZER, groups, Choice([], labelled)) == sentence
