"""In what the kinds of runs differ: what it is to release a device, and what proves that it is done (ADR 12)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from django.db.models import Q

from fleet.targeting.services import Evidence
from tasks.models import Kind, TaskRun
from tasks.selectors import agents as agents_known
from tasks.selectors import system as system_known
from tasks.services import agents, system


@dataclass(frozen=True, slots=True)
class Work:
    """All of it is asked under the run's lock.

    ``unable``: devices that can't be asked, by the sentence that says why. ``ask``: have devices (names by id) do it;
    those that were asked. ``follow``: let targets lead to their attempts. ``evidence``: what devices have proven.
    ``take_back``: whatever no device has begun; ``never_begun``: the released targets that it left without anything.
    """

    unable: Callable[[TaskRun, Collection[int]], dict[str, list[int]]]
    ask: Callable[[TaskRun, Mapping[int, str]], set[int]]
    follow: Callable[[TaskRun], None]
    evidence: Callable[[TaskRun], Evidence]
    take_back: Callable[[TaskRun], None]
    never_begun: Callable[[TaskRun], Q]


_WORKS: dict[str, Work] = {
    Kind.TASK_RUN: Work(
        unable=system_known.unable,
        ask=system.ask,
        follow=system.follow,
        evidence=system_known.evidence,
        take_back=system.take_back,
        never_begun=system_known.never_begun,
    ),
    Kind.AGENT_RELEASE: Work(
        unable=agents_known.unable,
        ask=agents.ask,
        follow=agents.follow,
        evidence=agents_known.evidence,
        take_back=agents.take_back,
        never_begun=agents_known.never_begun,
    ),
}


def work_of(run: TaskRun) -> Work:
    """What this run is about."""
    return _WORKS[run.kind]
