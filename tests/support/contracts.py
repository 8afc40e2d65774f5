"""What holds for the jobs of every machine under the updater, whatever it is made of."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Protocol

from agent.updater.machine import MAX_TAIL_CHARS, Job, JobState, JobStatus


class Jobs(Protocol):
    """The part of a machine that this is about."""

    def start(self, attempt: str, job: Job) -> None: ...

    def observe(self, attempt: str, job: Job) -> JobStatus: ...

    def stop(self, attempt: str, job: Job) -> None: ...


def obey_the_contract(jobs: Jobs, until: Callable[[Callable[[], bool]], object]) -> None:
    """Start, find, repeat and stop jobs that take a moment and succeed; ``until`` lets time pass until it holds."""
    attempt, other = str(uuid.uuid4()), str(uuid.uuid4())
    jobs.stop(attempt, Job.UPDATE)
    assert jobs.observe(attempt, Job.UPDATE).state is JobState.ABSENT

    jobs.start(attempt, Job.UPDATE)
    running = jobs.observe(attempt, Job.UPDATE)
    assert running.state is JobState.RUNNING
    assert running.silent_seconds >= 0
    jobs.start(attempt, Job.UPDATE)
    assert jobs.observe(other, Job.UPDATE).state is JobState.ABSENT
    assert jobs.observe(attempt, Job.UPGRADE).state is JobState.ABSENT

    _ends_well(jobs, attempt, until)
    jobs.start(attempt, Job.UPDATE)
    _ends_well(jobs, attempt, until)

    jobs.start(attempt, Job.UPDATE)
    jobs.stop(attempt, Job.UPDATE)
    assert jobs.observe(attempt, Job.UPDATE).state is not JobState.RUNNING


def _ends_well(jobs: Jobs, attempt: str, until: Callable[[Callable[[], bool]], object]) -> None:
    until(lambda: jobs.observe(attempt, Job.UPDATE).state is JobState.ENDED)
    for status in (jobs.observe(attempt, Job.UPDATE), jobs.observe(attempt, Job.UPDATE)):
        assert status.state is JobState.ENDED
        assert status.exit_code == 0
        assert len(status.tail) <= MAX_TAIL_CHARS
