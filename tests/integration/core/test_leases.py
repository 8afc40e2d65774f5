"""Leases between connections that really are several."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from fleet.core import clock
from fleet.core.leases import lease
from fleet.core.models import Lease
from tests.integration.rollouts.together import together

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.database
def test_a_second_runner_gets_no_lease_until_the_first_is_done() -> None:
    with lease("sweep", seconds=60) as first, lease("sweep", seconds=60) as second, lease("drain", seconds=60) as other:
        assert (first, second, other) == (True, False, True)
    with lease("sweep", seconds=60) as again:
        assert again


@pytest.mark.database
def test_the_lease_of_a_killed_worker_runs_out() -> None:
    Lease.objects.create(name="sweep", holder="killed", expires_at=NOON + timedelta(seconds=60))
    with clock.reading(lambda: NOON + timedelta(seconds=59)), lease("sweep", seconds=60) as early:
        assert not early
    with clock.reading(lambda: NOON + timedelta(seconds=60)), lease("sweep", seconds=60) as late:
        assert late


@pytest.mark.database
def test_who_overran_his_lease_takes_nothing_from_the_next_holder() -> None:
    with clock.reading(lambda: NOON), lease("sweep", seconds=60) as slow:
        assert slow
        with clock.reading(lambda: NOON + timedelta(seconds=61)):
            successor = lease("sweep", seconds=60)
            assert successor.__enter__()
    assert Lease.objects.get().expires_at == NOON + timedelta(seconds=121)


@pytest.mark.clause("OPS-2")
@pytest.mark.database(transaction=True)
@pytest.mark.parametrize("known", [False, True], ids=["the first time ever", "later"])
def test_of_many_at_once_exactly_one_gets_it(known: bool) -> None:
    if known:
        Lease.objects.create(name="sweep", holder="earlier", expires_at=clock.now())
    got: list[bool] = []
    held = []

    def take() -> None:
        taken = lease("sweep", seconds=60)
        held.append(taken)
        got.append(taken.__enter__())

    assert together(*[partial(take)] * 8) == []
    assert sorted(got) == [False] * 7 + [True]
