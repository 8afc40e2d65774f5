"""Runs at fixed times: when, in whose time zone, what is skipped, and that nothing piles up (TSK-9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import Group, User
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from agent.wire.messages import AttemptState
from fleet.beat import Scheduler
from fleet.celery import app
from fleet.core import door
from fleet.core.errors import Conflict, Denied
from fleet.core.kinds import Done
from fleet.core.models import AuditEntry, Event
from fleet.ctl import output
from fleet.ctl.commands import get
from tasks import jobs, services
from tasks.models import TaskRun, TaskSchedule
from tests.integration.api.rest import Rest, problem
from tests.integration.tasks.tasks import Tasks

pytestmark = [pytest.mark.clause("TSK-9"), pytest.mark.database]


def manifest(times: str = "30 2 * * *", zone: str = "UTC", **template: Any) -> dict[str, Any]:
    spec = Tasks.taskrun(None)["spec"] | template  # type: ignore[arg-type]  # needs no fleet
    return {
        "apiVersion": "fleet.nationtech.io/v1alpha1",
        "kind": "TaskSchedule",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": times, "timeZone": zone, "template": spec},
    }


def apply(text: dict[str, Any] | None = None, *, actor: User | None = None, dry_run: bool = False) -> Done:
    (admitted,) = door.admit(yaml.safe_dump(text or manifest()))
    return services.schedule_apply(manifest=admitted, actor=actor, dry_run=dry_run)


def made(text: dict[str, Any] | None = None) -> TaskSchedule:
    return TaskSchedule.objects.get(pk=apply(text).pk)


def at(tasks: Tasks, text: str) -> None:
    """It is this time now, and a worker looks."""
    tasks.now = datetime.fromisoformat(text).replace(tzinfo=UTC)
    services.sweep()


def names() -> list[str]:
    return sorted(TaskRun.objects.values_list("name", flat=True))


def test_each_time_makes_one_run_however_often_it_is_looked_at(tasks: Tasks) -> None:
    tasks.updaters(["edge-1"])
    schedule = made()
    services.sweep()
    assert names() == []
    at(tasks, "2026-12-02 02:29:59")
    assert names() == []
    at(tasks, "2026-12-02 02:30:00")
    services.sweep()
    jobs.run_schedule(schedule.pk)
    run = TaskRun.objects.get()
    assert (run.name, run.schedule, run.created_by) == (
        "nightly-20261202-0230",
        schedule,
        "TaskSchedule default/nightly",
    )
    assert tasks.shown(run) == {"edge-1": "Released"}
    assert (run.deadline_at - run.created_at).total_seconds() == 3600
    schedule.refresh_from_db()
    assert schedule.last_run == run
    assert schedule.message == "Made default/nightly-20261202-0230 for 2026-12-02 02:30 UTC"


def test_a_time_is_skipped_while_the_last_run_is_under_way(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    schedule = made(manifest(deadlineSeconds=2_000_000))
    at(tasks, "2026-12-02 02:30")
    at(tasks, "2026-12-03 02:30")
    assert len(names()) == 1
    schedule.refresh_from_db()
    assert schedule.message == "2026-12-03 02:30 UTC was skipped: default/nightly-20261202-0230 was still under way"
    assert Event.objects.filter(reason="ScheduleSkipped", object_name="default/nightly").count() == 1
    tasks.says_attempt(device, AttemptState.COMPLETED)
    at(tasks, "2026-12-04 02:30")
    assert names() == ["nightly-20261202-0230", "nightly-20261204-0230"]


@pytest.mark.parametrize(
    ("back_at", "expected"),
    [
        ("2026-12-02 05:20", ["nightly-20261202-0500"]),  # of the times of the last hour the newest
        ("2026-12-12 05:00", ["nightly-20261212-0500"]),
    ],
)
def test_missed_times_do_not_pile_up(tasks: Tasks, back_at: str, expected: list[str]) -> None:
    made(manifest("0,30 * * * *"))
    at(tasks, back_at)
    services.sweep()
    assert names() == expected


def test_a_time_that_is_long_over_is_told_and_not_made_up(tasks: Tasks) -> None:
    schedule = made()
    at(tasks, "2026-12-02 09:00")  # everything was down all night
    assert names() == []
    schedule.refresh_from_db()
    assert schedule.message == "2026-12-02 02:30 UTC was missed: nothing looked at it within an hour"
    assert schedule.next_at == datetime(2026, 12, 3, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "zone", "now", "expected"),
    [
        ("30 2 * * *", "Europe/Zurich", "2026-12-01 14:00", "2026-12-02 01:30"),
        ("30 2 * * *", "Europe/Zurich", "2026-07-01 14:00", "2026-07-02 00:30"),
        ("30 2 * * 0", "America/New_York", "2026-12-01 14:00", "2026-12-06 07:30"),
        ("0 3 1 */3 *", "UTC", "2026-12-01 14:00", "2027-01-01 03:00"),
        ("0 4 29 2 *", "UTC", "2026-12-01 14:00", "2028-02-29 04:00"),
        # the night in which 02:30 does not exist, and the one in which it comes twice
        ("30 2 * * *", "Europe/Zurich", "2026-03-28 20:00", "2026-03-29 01:30"),
        ("30 2 * * *", "Europe/Zurich", "2026-10-24 20:00", "2026-10-25 00:30"),
        ("30 2 * * *", "Europe/Zurich", "2026-10-25 00:30", "2026-10-26 01:30"),
        ("45 2 * * *", "Europe/Zurich", "2026-10-25 01:30", "2026-10-26 01:45"),
    ],
)
def test_times_are_those_of_the_time_zones_clocks(tasks: Tasks, times: str, zone: str, now: str, expected: str) -> None:
    tasks.now = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert made(manifest(times, zone)).next_at == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_suspended_schedule_makes_nothing_and_makes_up_nothing(tasks: Tasks) -> None:
    schedule = made()
    services.schedule_suspend(schedule=schedule, suspended=True, actor=None)
    services.schedule_suspend(schedule=schedule, suspended=True, actor=None)
    assert not PeriodicTask.objects.get().enabled
    at(tasks, "2026-12-02 02:30")
    tasks.later(minutes=10)
    services.schedule_suspend(schedule=schedule, suspended=False, actor=None)
    services.sweep()
    assert names() == []
    at(tasks, "2026-12-03 02:30")
    assert names() == ["nightly-20261203-0230"]
    assert sorted(AuditEntry.objects.values_list("action", flat=True))[-2:] == ["resume", "suspend"]


def test_a_run_is_made_now_unless_one_is_under_way(tasks: Tasks) -> None:
    schedule = made()
    before = schedule.next_at
    run = services.schedule_run_now(schedule=schedule, actor=None)
    assert run.name == "nightly-20261201-1400"
    with pytest.raises(Conflict, match="default/nightly-20261201-1400 of TaskSchedule default/nightly is under way"):
        services.schedule_run_now(schedule=schedule, actor=None)
    services.taskrun_end(run=run, actor=None)
    assert services.schedule_run_now(schedule=schedule, actor=None).name == "nightly-20261201-1400-2"
    schedule.refresh_from_db()
    assert schedule.next_at == before


def test_the_same_manifest_changes_nothing_and_another_counts_from_its_times(tasks: Tasks) -> None:
    assert apply(dry_run=True) == Done("created", 1, None)
    assert not TaskSchedule.objects.exists()
    schedule = made()
    assert apply() == Done("unchanged", 1, schedule.pk)
    changed = manifest("0 5 * * *", "Europe/Zurich")
    assert apply(changed, dry_run=True) == Done("configured", 2, schedule.pk)
    assert apply(changed) == Done("configured", 2, schedule.pk)
    schedule.refresh_from_db()
    assert schedule.next_at == datetime(2026, 12, 2, 4, 0, tzinfo=UTC)
    assert str(CrontabSchedule.objects.get().timezone) == "Europe/Zurich"


def test_a_deleted_schedule_leaves_its_runs_and_no_bell(tasks: Tasks) -> None:
    schedule = made()
    at(tasks, "2026-12-02 02:30")
    services.schedule_delete(schedule=schedule, actor=None)
    services.schedule_delete(schedule=schedule, actor=None)
    assert (PeriodicTask.objects.count(), CrontabSchedule.objects.count()) == (0, 0)
    jobs.run_schedule(schedule.pk)
    at(tasks, "2026-12-03 02:30")
    assert names() == ["nightly-20261202-0230"]
    assert TaskRun.objects.get().schedule is None


def test_beat_rings_for_it(tasks: Tasks) -> None:
    schedule = made(manifest("* * * * *"))
    entry = Scheduler(app, lazy=True).all_as_schedule()[PeriodicTask.objects.get().name]
    assert (entry.task, list(entry.args)) == (jobs.run_schedule.name, [schedule.pk])
    assert str(entry.schedule.tz) == "UTC"


@pytest.mark.clause("DEP-7")
def test_who_may_not_deploy_to_the_group_makes_no_schedule_and_no_run(tasks: Tasks) -> None:
    bob = User.objects.create_user("bob")
    bob.groups.add(Group.objects.get(name="operator"))
    with pytest.raises(Denied, match="lab"):
        apply(actor=bob)
    with pytest.raises(Denied, match="lab"):
        services.schedule_run_now(schedule=made(), actor=bob)
    assert names() == []


# Entrances -----------------------------------------------------------------------------------------------------------

ONE = "namespaces/default/taskschedules/nightly/"


def test_a_schedule_over_rest_from_apply_to_deletion(tasks: Tasks) -> None:
    rest = Rest.of(User.objects.create_superuser("ada"))
    assert rest.apply(yaml.safe_dump(manifest())).json()["results"][0]["outcome"] == "created"
    found = rest.get(ONE)
    assert (found["kind"], found["spec"]["schedule"], found["metadata"]["generation"]) == (
        "TaskSchedule",
        "30 2 * * *",
        1,
    )
    assert found["status"]["nextTime"] == "2026-12-02T02:30:00Z"
    assert rest.names("taskschedules/", suspended="false") == ["nightly"]
    assert rest.call("POST", f"{ONE}suspend/").json()["status"]["nextTime"] is None
    assert rest.names("taskschedules/", suspended="true", namespace="default") == ["nightly"]
    assert rest.call("POST", f"{ONE}resume/").json()["status"]["suspended"] is False
    assert rest.call("POST", f"{ONE}run/").json()["metadata"]["name"] == "nightly-20261201-1400"
    assert problem(rest.call("POST", f"{ONE}run/"), 409)
    assert rest.get(ONE)["status"]["lastRunPhase"] == "Pending"
    assert rest.call("DELETE", ONE).status_code == 204
    assert problem(rest.call("GET", ONE), 404)["detail"] == "there is no task schedule default/nightly"


@pytest.mark.clause("API-2")
def test_fleetctl_prints_when_the_next_run_is(tasks: Tasks, capsys: pytest.CaptureFixture[str]) -> None:
    rest = Rest.of(User.objects.create_superuser("ada"))
    rest.apply(yaml.safe_dump(manifest(zone="Europe/Zurich")))
    get.show_sort(get.SCHEDULES, [rest.get(ONE)], output.Format.TABLE)
    heads, row = capsys.readouterr().out.splitlines()
    assert heads.split()[:3] == ["NAMESPACE", "NAME", "TIMES"]
    assert "30 2 * * *" in row
    assert "Europe/Zurich" in row
    assert "2026-12-02" in row
