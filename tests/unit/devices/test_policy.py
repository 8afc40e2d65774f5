"""What follows from facts about a device."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire import names
from devices import policy
from devices.policy import Thresholds, TokenFacts, connectivity, effective_labels, sift, token_refusal

NOW = datetime(2026, 12, 1, 14, 0, tzinfo=UTC)
LIMITS = Thresholds(stale=90, offline=300)


@pytest.mark.clause("DEV-5")
@pytest.mark.parametrize(
    ("silence", "expected"),
    [(0, "online"), (89, "online"), (90, "stale"), (299, "stale"), (300, "offline"), (10**7, "offline")],
)
def test_connectivity_follows_from_the_silence(silence: int, expected: str) -> None:
    assert connectivity(NOW - timedelta(seconds=silence), NOW, LIMITS) == expected


@pytest.mark.clause("DEV-5")
def test_a_device_that_never_reported_is_neither_online_nor_offline() -> None:
    assert connectivity(None, NOW, LIMITS) == "never"


labels = st.dictionaries(st.sampled_from(["role", "site", "canary", "device-id"]), st.sampled_from(["a", "b", "true"]))


@pytest.mark.clause("TSK-1")
@given(operator=labels, reported=labels, canary=st.booleans())
def test_reserved_labels_come_from_the_control_plane_alone(
    operator: dict[str, str], reported: dict[str, str], canary: bool
) -> None:
    seen = effective_labels("edge-1", canary, operator, reported)
    assert seen[names.DEVICE_ID_LABEL] == "edge-1"
    assert seen.get(names.CANARY_LABEL) == ("true" if canary else None)


@pytest.mark.clause("DEV-4")
def test_an_operators_label_wins() -> None:
    seen = effective_labels("edge-1", False, {"role": "gateway"}, {"role": "analyzer", "site": "north"})
    assert seen == {"role": "gateway", "site": "north", "device-id": "edge-1"}


@pytest.mark.clause("TSK-1")
def test_what_a_device_may_not_claim_is_named() -> None:
    sifted = sift({"canary": "true", "role": "analyzer", "bad key": "x", "site": "no/slash"})
    assert sifted.labels == {"role": "analyzer"}
    assert sifted.notices == [
        "label 'bad key' was ignored: the key has not the form of a Kubernetes label key",
        "label 'canary' was ignored: it is set by the control plane only",
        "label 'site' was ignored: the value has not the form of a Kubernetes label value",
    ]


@given(st.text(max_size=80), st.text(max_size=80))
def test_every_label_is_either_good_or_refused_with_a_reason(key: str, value: str) -> None:
    refusal = policy.label_refusal(key, value)
    good = (
        names.fits(names.LABEL_KEY, key) and names.fits(names.LABEL_VALUE, value) and key not in names.RESERVED_LABELS
    )
    assert (refusal is None) == good


@pytest.mark.case("E1")
@pytest.mark.parametrize(
    ("token", "words"),
    [
        (TokenFacts(NOW + timedelta(days=1), 1, 0, None), None),
        (TokenFacts(NOW, 1, 0, None), "expired at 2026-12-01 14:00 UTC"),
        (TokenFacts(NOW + timedelta(days=1), 2, 2, None), "has been used 2 times; its limit is 2"),
        (TokenFacts(NOW + timedelta(days=1), 2, 0, NOW), "was revoked at 2026-12-01 14:00 UTC"),
    ],
)
def test_a_token_ends_by_time_by_number_and_by_hand(token: TokenFacts, words: str | None) -> None:
    assert token_refusal(token, NOW) == words
