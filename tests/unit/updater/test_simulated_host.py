"""The host of simulated devices obeys what the real one does (updater/debian/test_disk.py, vm/test_agent_host.py)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from agent.updater.binary.simulated import SimulatedHost
from tests.support.devices import ManualClock
from tests.support.hosts import keep_releases, run_the_agent, try_candidates
from tests.support.upgrading_agents import target


class PassingTime(ManualClock):
    def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(60):
            if holds():
                return
            self.forward(1.0)
        raise AssertionError("it never came about")


@pytest.mark.clause("UPG-7")
def test_it_keeps_releases_as_a_real_one_does() -> None:
    versions = (f"2.{number}.0" for number in itertools.count())
    keep_releases(SimulatedHost(clock=PassingTime()), lambda attempt: target(next(versions)))


def test_trials_take_their_time_and_end() -> None:
    clock = PassingTime()
    try_candidates(SimulatedHost(clock=clock), target(), clock.until)


def test_its_agent_stops_and_starts() -> None:
    clock = PassingTime()
    run_the_agent(SimulatedHost(clock=clock), clock.until)
