"""Phase, sentence and conditions for any counts (DEP-15, DEP-16, DEP-17)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fleet.targeting import conditions
from fleet.targeting.policy import Count, Tally
from rollouts import policy

NOW = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)

few = st.integers(0, 4)
counts = st.builds(Count, held=few, waiting=few, converged=few, failed=few)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    canaries = draw(counts)
    proven = draw(st.integers(0, canaries.converged))
    return Tally(canaries=canaries, rest=draw(counts), proven=proven, opened=draw(st.booleans()))


def told(tally: Tally) -> Tally:
    """The set after everybody was told who has to be: no canary is held, and an open gate has been used."""
    tally = replace(tally, canaries=replace(tally.canaries, held=0))
    return replace(tally, opened=True) if policy.must_release(tally) else tally


@pytest.mark.clause("DEP-16")
@pytest.mark.clause("DEP-17")
@given(tallies().map(told))
def test_whatever_is_not_done_says_what_it_waits_for(tally: Tally) -> None:
    assume(tally.all.total)
    phase = policy.next_phase(tally)
    sentence = policy.sentence(phase, tally, [], NOW)
    assert bool(sentence) == (phase != "Converged")
    assert " 0 of" not in f" {sentence}"


@pytest.mark.clause("DEP-11")
@given(tallies())
def test_somebody_is_told_only_by_an_open_gate_or_as_a_canary(tally: Tally) -> None:
    if policy.must_release(tally) and not tally.canaries.held:
        assert not tally.opened
        assert tally.proven == tally.canaries.total


@pytest.mark.clause("DEP-15")
@given(tallies())
def test_ready_is_said_exactly_of_converged_sets(tally: Tally) -> None:
    phase = policy.next_phase(tally)
    said = policy.progress_conditions([], phase, tally, "words", now=NOW, generation=3)
    status = {each["type"]: each["status"] for each in said}
    assert (status["Ready"] == "True") == (phase == "Converged")
    assert (status["Progressing"] == "True") == (phase in ("Canary", "Releasing"))
    assert (status["Degraded"] == "True") == (tally.all.failed > 0)
    assert {each["observedGeneration"] for each in said} == {3}


@pytest.mark.clause("DEP-7")
def test_the_missing_group_source_is_a_condition_of_its_own() -> None:
    found = conditions.pending_conditions([], conditions.GROUP_SOURCE_MISSING, now=NOW, generation=1)
    (missing,) = [each for each in found if each["type"] == "GroupSourceMissing"]
    assert (missing["status"], missing["message"]) == ("True", conditions.NO_GROUP_SOURCE)
    later = conditions.pending_conditions(found, conditions.no_device("No device"), now=NOW, generation=1)
    assert [each["status"] for each in later if each["type"] == "GroupSourceMissing"] == ["False"]
