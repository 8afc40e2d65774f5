"""Selectors against Kubernetes' definition, written down a second time."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.wire.manifest import LabelSelector, SelectorRequirement
from fleet.core.labels import explain, matches

keys = st.sampled_from(["role", "site", "tier"])
values = st.sampled_from(["a", "b", ""])
labels = st.dictionaries(keys, values)
requirements = st.builds(
    lambda key, operator, chosen: SelectorRequirement(
        key=key, operator=operator, values=chosen if operator in ("In", "NotIn") else []
    ),
    keys,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(values, min_size=1, max_size=3),
)
selectors = st.builds(LabelSelector, matchLabels=labels, matchExpressions=st.lists(requirements, max_size=4))


def by_the_book(selector: LabelSelector, device: dict[str, str]) -> bool:
    """matchLabels is shorthand for In with one value; all requirements are ANDed."""
    everything = [SelectorRequirement(key=k, operator="In", values=[v]) for k, v in selector.matchLabels.items()]
    for requirement in [*everything, *selector.matchExpressions]:
        have = {device[requirement.key]} if requirement.key in device else set()
        wanted = set(requirement.values)
        holds = {
            "In": bool(have & wanted),
            "NotIn": not have & wanted,
            "Exists": bool(have),
            "DoesNotExist": not have,
        }[requirement.operator]
        if not holds:
            return False
    return True


@pytest.mark.clause("DEP-6")
@given(requirements, labels)
@example(SelectorRequirement(key="role", operator="NotIn", values=["a"]), {})
@example(SelectorRequirement(key="role", operator="In", values=[""]), {})
def test_a_requirement_alone_selects_what_kubernetes_selects(
    requirement: SelectorRequirement, device: dict[str, str]
) -> None:
    selector = LabelSelector(matchExpressions=[requirement])
    assert matches(selector, device) == by_the_book(selector, device)


@pytest.mark.clause("DEP-6")
@given(selectors, labels)
def test_selectors_select_what_kubernetes_selects(selector: LabelSelector, device: dict[str, str]) -> None:
    assert matches(selector, device) == by_the_book(selector, device)


@pytest.mark.clause("DEP-6")
def test_a_selector_reads_as_kubectl_writes_it() -> None:
    selector = LabelSelector(
        matchLabels={"role": "analyzer"},
        matchExpressions=[
            SelectorRequirement(key="tier", operator="In", values=["a", "b"]),
            SelectorRequirement(key="site", operator="NotIn", values=["moon"]),
            SelectorRequirement(key="device-id", operator="Exists"),
            SelectorRequirement(key="old", operator="DoesNotExist"),
        ],
    )
    assert explain(selector) == "role=analyzer,tier in (a,b),site notin (moon),device-id,!old"
