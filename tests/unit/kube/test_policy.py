"""The conditions that ``kubectl wait``, Argo CD and Flux read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.kube.policy import status_of

NOW = datetime(2026, 12, 1, 5, 0, tzinfo=UTC)
ACCEPTED = ("", "")


def item(status: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"generation": 3}, "status": status or {}}


def words(status: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}


@pytest.mark.clause("K8S-2")
@pytest.mark.parametrize(
    ("phase", "ready", "progressing", "degraded"),
    [
        ("Pending", "False", "True", "False"),
        ("Canary", "False", "True", "False"),
        ("Converged", "True", "False", "False"),
        ("Completed", "True", "False", "False"),
        ("Failed", "False", "False", "True"),
        ("Cancelled", "False", "False", "False"),
    ],
)
def test_each_phase_in_the_words_of_the_cluster(phase: str, ready: str, progressing: str, degraded: str) -> None:
    status = status_of({"phase": phase, "message": ""}, item(), refusal=ACCEPTED, now=NOW)
    assert words(status) == {"Accepted": "True", "Ready": ready, "Progressing": progressing, "Degraded": degraded}
    assert status["observedGeneration"] == 3


def test_what_runs_is_still_shown_when_a_change_of_it_is_refused() -> None:
    shown = {"phase": "Converged", "counts": {"converged": 5}}
    status = status_of(shown, item(), refusal=("Invalid", "spec.score: is missing"), now=NOW)
    assert (status["phase"], status["counts"]) == ("Converged", {"converged": 5})
    assert status["message"] == "spec.score: is missing"
    assert words(status) == {"Accepted": "False", "Ready": "False", "Progressing": "False", "Degraded": "True"}


def test_a_time_moves_with_its_condition_only() -> None:
    first = status_of({"phase": "Canary"}, item(), refusal=ACCEPTED, now=NOW)
    later = status_of({"phase": "Converged"}, item(first), refusal=ACCEPTED, now=NOW + timedelta(minutes=1))
    times = {each["type"]: each["lastTransitionTime"] for each in later["conditions"]}
    assert times == {
        "Accepted": "2026-12-01T05:00:00Z",
        "Ready": "2026-12-01T05:01:00Z",
        "Progressing": "2026-12-01T05:01:00Z",
        "Degraded": "2026-12-01T05:00:00Z",
    }
    assert status_of({"phase": "Converged"}, item(later), refusal=ACCEPTED, now=NOW + timedelta(hours=1)) == later
