"""The canary gate and the verdict: what may never happen, for any counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.targeting.policy import Count, Tally, Verdict, gate_is_open, verdict

few = st.integers(0, 6)
counts = st.builds(Count, held=few, waiting=few, converged=few, failed=few, ended=few)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    canaries = draw(counts)
    proven = draw(st.integers(0, canaries.converged))
    return Tally(canaries=canaries, rest=draw(counts), proven=proven, opened=draw(st.booleans()))


@pytest.mark.clause("DEP-11")
@given(tallies())
def test_gate_needs_every_canary_proven(tally: Tally) -> None:
    if tally.canaries.total and gate_is_open(tally):
        assert tally.proven == tally.canaries.converged == tally.canaries.total


@pytest.mark.clause("DEP-11")
@pytest.mark.case("R2")
@given(tallies())
def test_zero_converged_canaries_never_open_the_gate(tally: Tally) -> None:
    nobody = replace(tally, canaries=replace(tally.canaries, converged=0), proven=0)
    assert not nobody.canaries.total or not gate_is_open(nobody)


@pytest.mark.clause("DEP-12")
@given(tallies())
def test_one_more_failure_never_opens_the_gate(tally: Tally) -> None:
    canaries = tally.canaries
    worse = replace(
        tally,
        canaries=replace(canaries, failed=canaries.failed + 1, converged=max(0, canaries.converged - 1)),
        proven=max(0, tally.proven - 1),
    )
    assert not gate_is_open(worse)


@pytest.mark.clause("DEP-11")
def test_a_stale_canary_keeps_the_gate_shut() -> None:
    assert not gate_is_open(Tally(canaries=Count(converged=2), rest=Count(held=5), proven=1))


@pytest.mark.clause("DEP-11")
def test_an_empty_set_is_no_evidence() -> None:
    assert not gate_is_open(Tally())


@pytest.mark.clause("DEP-11")
def test_without_canaries_everybody_is_told_at_once() -> None:
    assert gate_is_open(Tally(rest=Count(held=5)))


@pytest.mark.clause("DEP-15")
@given(tallies())
def test_converged_means_every_target_and_at_least_one(tally: Tally) -> None:
    if verdict(tally) is Verdict.CONVERGED:
        assert tally.opened
        assert tally.all.converged + tally.all.ended == tally.all.total > 0


@pytest.mark.clause("DEP-12")
@given(tallies())
def test_a_failed_canary_is_a_failed_set(tally: Tally) -> None:
    if tally.canaries.failed:
        assert verdict(tally) is Verdict.FAILED


@pytest.mark.clause("DEP-15")
def test_one_failure_is_told_when_everybody_settled() -> None:
    spreading = Tally(rest=Count(waiting=1, converged=2, failed=1), opened=True)
    assert verdict(spreading) is Verdict.SPREADING
    assert verdict(replace(spreading, rest=Count(converged=3, failed=1))) is Verdict.FAILED
    assert verdict(replace(spreading, rest=Count(converged=4))) is Verdict.CONVERGED
