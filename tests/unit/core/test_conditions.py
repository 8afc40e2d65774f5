from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.core.conditions import set_condition

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.clause("DEP-15")
def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    first = set_condition([], type="Ready", status=False, reason="Pending", message="", now=NOON, generation=1)
    later = NOON + timedelta(hours=1)
    same = set_condition(first, type="Ready", status=False, reason="Canary", message="x", now=later, generation=2)
    assert same == [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Canary",
            "message": "x",
            "lastTransitionTime": "2026-12-01T12:00:00Z",
            "observedGeneration": 2,
        }
    ]
    moved = set_condition(same, type="Ready", status=True, reason="Converged", message="", now=later, generation=2)
    assert moved[0]["lastTransitionTime"] == "2026-12-01T13:00:00Z"
    assert first[0]["reason"] == "Pending"
