"""Steps on one heap: in time, one at a time, and none stops the others."""

from __future__ import annotations

import logging
import threading

import pytest

from agent.clock import SystemClock
from harness.waiting import wait_until
from simulation.agenda import RECOVERY_SECONDS, Agenda
from tests.support.devices import ManualClock


def test_steps_are_called_when_they_are_due_and_again_after_their_pause() -> None:
    clock, called = ManualClock(now=0.0), []
    agenda = Agenda(clock)
    agenda.add(lambda: called.append(("a", clock.now())) or 10.0, 3.0)
    agenda.add(lambda: called.append(("b", clock.now())) or 4.0, 1.0)
    for _ in range(14):
        agenda.do_due()
        clock.forward(1)
    assert called == [("b", 1), ("a", 3), ("b", 5), ("b", 9), ("a", 13), ("b", 13)]


def test_a_step_that_fails_is_logged_counted_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, called = ManualClock(now=0.0), []

    def fails() -> float:
        called.append(clock.now())
        raise ValueError("out of luck")

    agenda = Agenda(clock)
    agenda.add(fails, 0.0)
    with caplog.at_level(logging.ERROR):
        agenda.do_due()
        clock.forward(RECOVERY_SECONDS)
        agenda.do_due()
    assert called == [0.0, RECOVERY_SECONDS]
    assert agenda.failures == 2
    assert "out of luck" in caplog.text


def test_threads_share_the_steps_and_end_when_they_are_told() -> None:
    agenda, stop = Agenda(SystemClock()), threading.Event()
    busy: set[int] = set()
    twice_at_once, calls = [], [0] * 20

    def step(number: int) -> float:
        if number in busy:
            twice_at_once.append(number)
        busy.add(number)
        calls[number] += 1
        busy.discard(number)
        return 0.0

    for number in range(len(calls)):
        agenda.add(lambda number=number: step(number), 0.0)
    threads = agenda.start(4, stop)
    wait_until(lambda: min(calls) >= 3, seconds=10, what="every step was called three times", every=0.01)
    stop.set()
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)
    assert not twice_at_once
