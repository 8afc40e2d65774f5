"""The one sentence (DEP-16)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.targeting import wording
from fleet.targeting.wording import Blocker

NOW = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)
OFFLINE = Blocker("edge-7", canary=True, connectivity="offline", since=datetime(2026, 12, 1, 14, 2, tzinfo=UTC))
PULLING = Blocker("edge-3", message="pulling image\nlayer 3 of 7")

pytestmark = pytest.mark.clause("DEP-16")


def test_a_single_canary_is_named_with_its_reason() -> None:
    sentence = wording.waiting([OFFLINE], missing=1, total=1, canaries=True, now=NOW)
    assert sentence == "Waiting for canary edge-7: offline since 14:02 UTC"


def test_several_devices_are_counted_and_the_first_named() -> None:
    many = [OFFLINE, PULLING, Blocker("edge-4", connectivity="never")]
    assert wording.waiting(many, missing=4, total=10, canaries=False, now=NOW) == (
        "Waiting for 4 of 10 devices: edge-7 (offline since 14:02 UTC), edge-3 (pulling image / layer 3 of 7), "
        "edge-4 (has never reported) and 1 more"
    )


def test_a_time_more_than_a_day_ago_has_its_date() -> None:
    assert wording.moment(NOW - timedelta(hours=23), NOW) == "16:00 UTC"
    assert wording.moment(NOW - timedelta(days=3), NOW) == "2026-11-28 15:00 UTC"


def test_a_failed_canary_says_what_to_do() -> None:
    broken = Blocker("edge-7", canary=True, failed=True, message="init exited with 3.")
    assert wording.failed([broken], count=1, total=2, canaries=True, now=NOW) == (
        "Canary edge-7 failed: init exited with 3; fix it or apply a new revision"
    )


@pytest.mark.clause("DEP-12")
def test_a_forgotten_canary_says_that_fixing_is_no_way() -> None:
    gone = Blocker("edge-7", canary=True, failed=True, forgotten=True)
    assert wording.failed([gone], count=1, total=2, canaries=True, now=NOW) == (
        "Canary edge-7 failed: the device was forgotten; retarget to leave it out"
    )


def test_several_failures() -> None:
    broken = [Blocker(f"edge-{n}", failed=True, message="no space") for n in range(3)]
    assert wording.failed(broken, count=5, total=9, canaries=False, now=NOW) == (
        "5 of 9 devices failed: edge-0 (no space), edge-1 (no space), edge-2 (no space) and 2 more; "
        "fix them or apply a new revision"
    )


@pytest.mark.clause("DEP-11")
def test_a_converged_but_stale_canary_says_so() -> None:
    stale = Blocker(
        "edge-7", canary=True, converged=True, connectivity="stale", reported_at=NOW - timedelta(minutes=10)
    )
    assert wording.waiting([stale], missing=1, total=1, canaries=True, now=NOW) == (
        "Waiting for canary edge-7: converged, but a report newer than that of 14:50 UTC is needed"
    )


@pytest.mark.clause("DEP-14")
def test_removal_names_whom_it_waits_for() -> None:
    offline = Blocker("edge-3", connectivity="offline", since=NOW - timedelta(minutes=58))
    command = "fleetctl forget-device default/api"
    assert wording.removing([offline], total=1, give_up=command, now=NOW) == (
        "Waiting for edge-3 to remove its containers: offline since 14:02 UTC; "
        "if it will not come back: fleetctl forget-device default/api edge-3"
    )
    assert wording.removing([Blocker("edge-4"), offline], total=2, give_up=command, now=NOW) == (
        "Waiting for 2 devices to remove their containers: edge-4 (has not confirmed it yet), "
        "edge-3 (offline since 14:02 UTC); "
        "if edge-3 will not come back: fleetctl forget-device default/api edge-3"
    )
    assert wording.removing([Blocker("edge-4")], total=1, give_up=command, now=NOW) == (
        "Waiting for edge-4 to remove its containers: has not confirmed it yet"
    )


def test_a_long_message_is_cut() -> None:
    blocker = Blocker("edge-3", message="x" * 5000)
    assert len(wording.why(blocker, NOW)) == wording.MAX_WORDS


def test_the_last_line_of_a_log_is_kept_because_it_says_why() -> None:
    log = "\n".join(["init container migrate failed with exit code 1: migrating", *["row"] * 200, "disk full\n"])
    reason = wording.why(Blocker("edge-3", failed=True, message=log), NOW)
    assert reason.startswith("init container migrate failed with exit code 1: migrating / row / ")
    assert reason.endswith(" / row / disk full")
