"""What holds for every host of agent upgrades, real or simulated, in parts: its disk, its trials, its agent's unit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from agent.releases.description import Release, place
from agent.updater.binary.host import RELEASES, STAGING, VERIFIED, AgentStatus, Trial
from agent.updater.machine import MAX_TAIL_CHARS, JobState, JobStatus, Volume
from agent.wire.manifest import AgentUpgrade

Until = Callable[[Callable[[], bool]], object]


class Releases(Protocol):
    def active(self) -> str: ...

    def places(self) -> Sequence[str]: ...

    def release(self, place: str) -> Release: ...

    def damage(self, place: str) -> str: ...

    def volumes(self) -> Mapping[str, Volume]: ...

    def verify(self, attempt: str, target: AgentUpgrade, seconds: float) -> str: ...

    def unpack(self, attempt: str, target: AgentUpgrade, seconds: float) -> str: ...

    def switch(self, place: str) -> None: ...

    def tidy(self, attempt: str, keep: Collection[str]) -> None: ...


class Trials(Protocol):
    def start(self, attempt: str, trial: Trial, target: AgentUpgrade) -> None: ...

    def observe(self, attempt: str, trial: Trial) -> JobStatus: ...

    def stop(self, attempt: str, trial: Trial) -> None: ...


class AgentUnit(Protocol):
    def stop_agent(self) -> None: ...

    def start_agent(self) -> None: ...

    def agent(self) -> AgentStatus: ...


def keep_releases(host: Releases, fetched: Callable[[str], AgentUpgrade]) -> None:
    """Two upgrades and a way back; ``fetched`` gives the attempt's download, of another version each time."""
    assert host.volumes().keys() == {STAGING, VERIFIED, RELEASES}
    first = host.active()
    places = [first]
    for _ in range(3):
        attempt = str(uuid.uuid4())
        target = fetched(attempt)
        there = place(target)
        assert host.damage(there), "it is not there yet"
        for _ in range(2):
            assert host.verify(attempt, target, 60) == ""
        for _ in range(2):
            assert host.unpack(attempt, target, 60) == ""
            assert host.release(there).version == target.version
            assert host.damage(there) == ""
        assert host.places()[0] == there
        assert host.active() == places[0]
        for _ in range(2):
            host.switch(there)
            assert host.active() == there
        for _ in range(2):
            host.tidy(attempt, keep=places[:2])
        places = [there, *places]
        assert list(host.places()) == places[:3], "the active one, the one before it and one more"
    host.switch(places[1])
    assert host.active() == places[1]


def try_candidates(host: Trials, target: AgentUpgrade, until: Until) -> None:
    """Start, find, repeat and stop trials that take a moment and succeed; ``until`` lets time pass until it holds."""
    attempt, other = str(uuid.uuid4()), str(uuid.uuid4())
    for trial in Trial:
        host.stop(attempt, trial)
        assert host.observe(attempt, trial).state is JobState.ABSENT
        for _ in range(2):
            host.start(attempt, trial, target)
            host.start(attempt, trial, target)
            assert host.observe(attempt, trial).state is JobState.RUNNING
            assert host.observe(other, trial).state is JobState.ABSENT
            until(lambda trial=trial: host.observe(attempt, trial).state is JobState.ENDED)  # type: ignore[misc]
            status = host.observe(attempt, trial)
            assert status.exit_code == 0
            assert target.version in status.tail.splitlines()[-1]
            assert len(status.tail) <= MAX_TAIL_CHARS
        host.start(attempt, trial, target)
        host.stop(attempt, trial)
        assert host.observe(attempt, trial).state is not JobState.RUNNING


def run_the_agent(host: AgentUnit, until: Until) -> None:
    """Stop and start an agent that stays up, each of them twice."""
    for _ in range(2):
        host.stop_agent()
        assert not host.agent().is_running
    for _ in range(2):
        host.start_agent()
        until(lambda: host.agent().is_running)
    until(lambda: host.agent().seconds > 1)
    assert host.agent().restarts == 0
    host.stop_agent()
    assert not host.agent().is_running
