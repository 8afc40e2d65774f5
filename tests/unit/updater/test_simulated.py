"""The simulated machine keeps the promises of the real one; tests/vm/test_jobs.py holds that one to the same."""

from __future__ import annotations

from collections.abc import Callable

from agent.updater.simulated import SimulatedMachine
from tests.support.contracts import obey_the_contract
from tests.support.devices import ManualClock


def test_its_jobs_obey_the_contract() -> None:
    clock = ManualClock()

    def until(holds: Callable[[], bool]) -> None:
        for _ in range(60):
            if holds():
                return
            clock.forward(1.0)
        raise AssertionError("it never came about")

    obey_the_contract(SimulatedMachine(clock), until)
