"""What becomes of a wanted agent, from everything that may be known of it (UPG-1, UPG-2, UPG-9, TSK-5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.wire.manifest import AgentUpgrade
from upgrades.models import Standing, State
from upgrades.policy import Case, Known, Verdict, state_after, verdict

SINCE = datetime(2026, 12, 1, 14, 0, tzinfo=UTC)
OPEN = {"offered", "accepted", "running", "repair-required", "rollback-failed"}
ENDS = ["completed", "failed", "refused"]
PROGRESS = ["accepted", "running", "running", "rollback-failed"]


def target(scheme: str = "https") -> AgentUpgrade:
    url = f"{scheme}://r.example.com/agent:1"
    return AgentUpgrade(version="1.4.0", architecture="amd64", url=url, maxSize=1, sha256="ab" * 32)


KNOWN = st.builds(
    Known,
    st.sampled_from([state.value for state in State]),
    step=st.sampled_from(["", "self-test"]),
    message=st.sampled_from(["", "it does not start."]),
    is_late=st.booleans(),
)
CASES = st.builds(
    Case,
    target=st.sampled_from(["https", "oci"]).map(target),
    reported=st.sampled_from(["", "1.3.0", "1.4.0"]),
    architecture=st.sampled_from(["", "amd64", "arm64"]),
    capabilities=st.sets(st.sampled_from(["AgentUpgradeV1", "OciArtifactV1"])),
    attempt=st.none() | KNOWN,
    other=st.sampled_from(["", "TaskRun default/upgrade"]),
    since=st.just(SINCE),
)
WILLING = Case(target(), "1.3.0", "amd64", {"AgentUpgradeV1", "OciArtifactV1"}, None, "", SINCE)


@pytest.mark.clause("UPG-2")
@example(replace(WILLING, attempt=Known("given-up")))
@given(CASES)
def test_every_case_has_a_state_and_one_sentence(case: Case) -> None:
    found = verdict(case)
    assert Standing(found.state)
    assert found.message
    assert found.message[0].isupper()
    assert "\n" not in found.message
    assert ".;" not in found.message


@pytest.mark.clause("UPG-1", "UPG-2", "UPG-9", "TSK-5")
@given(CASES)
def test_only_a_willing_and_able_device_that_runs_another_agent_is_offered_one(case: Case) -> None:
    found = verdict(case)
    lacking = {"AgentUpgradeV1", *(["OciArtifactV1"] if case.target.url.startswith("oci") else [])}
    able = bool(case.reported) and case.architecture in ("", "amd64") and lacking <= set(case.capabilities)
    fresh = case.attempt is None or case.attempt.state == "withdrawn"
    lapsed = case.attempt is not None and case.attempt.state == "offered" and case.attempt.is_late
    assert found.offer == (able and case.reported != "1.4.0" and not case.other and (fresh or lapsed))
    if found.withdraw:
        assert case.attempt is not None
        assert case.attempt.state == "offered"  # what has begun is never taken back
    if found.offer and lapsed:
        assert found.withdraw  # or two would be open


@pytest.mark.clause("UPG-2")
@pytest.mark.case("U6")
@given(st.sampled_from(ENDS), st.permutations(range(len(PROGRESS) + 1)), st.booleans())
def test_words_in_any_order_end_alike_and_no_end_is_followed_by_an_offer(
    end: str, order: list[int], runs_it: bool
) -> None:
    said = [*PROGRESS, end]
    state = reduce(state_after, (said[index] for index in order), "offered")
    found = verdict(replace(WILLING, attempt=Known(state), reported="1.4.0" if runs_it else "1.3.0"))
    in_order = verdict(replace(WILLING, attempt=Known(end), reported="1.4.0" if runs_it else "1.3.0"))
    assert found == in_order
    assert not found.offer


@pytest.mark.clause("UPG-2")
@pytest.mark.parametrize("state", sorted(OPEN))
def test_a_device_with_an_open_attempt_is_not_asked_twice(state: str) -> None:
    found = verdict(replace(WILLING, attempt=Known(state)))
    assert (found.offer, found.withdraw) == (False, False)


@pytest.mark.clause("UPG-2")
def test_a_device_that_got_there_by_itself_is_asked_no_more() -> None:
    found = verdict(replace(WILLING, reported="1.4.0", attempt=Known("offered")))
    assert found == Verdict("current", "Runs agent 1.4.0, reported since 2026-12-01 14:00 UTC", withdraw=True)
