"""Bells, sweeps and people at once: a time makes one run, a name one schedule (TSK-9)."""

from __future__ import annotations

import pytest

from agent.wire.messages import AttemptState
from fleet.core.errors import Conflict
from fleet.core.models import AuditEntry
from tasks import jobs, services
from tasks.models import TaskRun, TaskSchedule
from tests.integration.rollouts.together import together
from tests.integration.tasks.tasks import Tasks
from tests.integration.tasks.test_schedules import apply, manifest

pytestmark = [pytest.mark.clause("TSK-9"), pytest.mark.database(transaction=True)]


def test_a_time_makes_one_run_however_many_look_at_once(tasks: Tasks) -> None:
    tasks.updaters(["edge-1"])
    pk = apply().pk
    assert pk is not None
    tasks.later(hours=12, minutes=31)
    bell = lambda: jobs.run_schedule(pk)  # noqa: E731
    assert together(bell, jobs.sweep, bell, jobs.sweep, bell) == []
    assert TaskRun.objects.count() == 1


def test_two_who_ask_for_a_run_at_once_get_one(tasks: Tasks) -> None:
    schedule = TaskSchedule.objects.get(pk=apply().pk)
    ask = lambda: services.schedule_run_now(schedule=schedule, actor=None)  # noqa: E731
    assert [type(error) for error in together(ask, ask)] == [Conflict]
    assert TaskRun.objects.count() == 1


def test_two_who_apply_the_same_name_at_once_make_one_schedule(tasks: Tasks) -> None:
    other = manifest("0 5 * * *")
    assert together(apply, lambda: apply(other), apply) == []
    schedule = TaskSchedule.objects.get()
    assert schedule.crontab.hour == schedule.spec["schedule"].split()[1]


def test_deleting_while_the_time_comes_makes_a_run_or_none(tasks: Tasks) -> None:
    schedule = TaskSchedule.objects.get(pk=apply().pk)
    tasks.later(hours=12, minutes=31)
    delete = lambda: services.schedule_delete(schedule=schedule, actor=None)  # noqa: E731
    assert together(delete, jobs.sweep, lambda: jobs.run_schedule(schedule.pk), delete) == []
    assert not TaskSchedule.objects.exists()
    assert TaskRun.objects.count() <= 1


@pytest.mark.clause("TSK-5")
def test_giving_up_while_the_device_says_its_last_word_loses_neither(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.RUNNING)
    tasks.reports_attempt(device, AttemptState.COMPLETED)
    attempt = tasks.attempt(device)
    errors = together(
        lambda: services.taskrun_give_up(run=run, device="edge-1", actor=None), jobs.drain_attempts, jobs.sweep
    )
    assert [type(error) for error in errors] in ([], [Conflict])
    jobs.sweep()
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.COMPLETED
    assert tasks.shown(run) == {"edge-1": "Completed"}
    assert AuditEntry.objects.filter(action="give-up").count() == 1 - len(errors)
