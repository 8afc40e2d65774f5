"""Selectors as people type them mean what kubectl's mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.manifest import LabelSelector, SelectorRequirement
from fleet.core.errors import Invalid
from fleet.core.labels import explain, matches
from fleet.core.short_selectors import parse

pytestmark = pytest.mark.clause("API-1")
LABELS = {"role": "analyzer", "tier": "a", "app.example.com/name": "api", "1": "2"}
PARTS = st.builds(
    SelectorRequirement,
    st.sampled_from(["role", "app.example.com/name", "x-1"]),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(["a", "b.c", "d_e"]), min_size=1),
) | st.builds(SelectorRequirement, st.sampled_from(["role", "y"]), st.sampled_from(["Exists", "DoesNotExist"]))


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("", True),
        ("role=analyzer", True),
        ("role == analyzer , tier=a", True),
        ("role=camera", False),
        ("role!=camera", True),
        ("none!=camera", True),
        ("tier in (a, b),role", True),
        ("tier notin (a,b)", False),
        ("!none", True),
        ("! role", False),
        ("app.example.com/name=api,1=2", True),
        ("none=", False),
    ],
)
def test_what_a_text_selects(text: str, selects: bool) -> None:
    assert matches(parse(text), LABELS) is selects


@pytest.mark.parametrize(
    "text",
    [
        "a b",
        "a=b c",
        "a in b",
        "a in (b",
        "in (a)",
        "=a",
        "a==b==c",
        "a in ((b))",
        "a;b",
        "ä=b",
        "-a",
        "x" * 5000,
        "a/b/c",
    ],
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse(text)


@given(st.lists(PARTS, max_size=5))
def test_a_selector_survives_being_written_and_read(parts: list[SelectorRequirement]) -> None:
    selector = LabelSelector(matchExpressions=parts)
    assert parse(explain(selector)).matchExpressions == parts


@given(st.text(max_size=200))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        parse(text)
    except Invalid:
        return
