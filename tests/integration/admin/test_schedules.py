"""The schedules' pages: write, preview, look, suspend, run now, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from fleet.core import clock
from tasks import services
from tasks.models import TaskRun, TaskSchedule
from tests.integration.admin.pages import at, buttons, rows, words
from tests.integration.tasks.tasks import Tasks

pytestmark = pytest.mark.clause("TSK-9")
LIST, ADD, ONE = "tasks_taskschedule_changelist", "tasks_taskschedule_add", "tasks_taskschedule_change"


@pytest.fixture
def tasks(db: None) -> Iterator[Tasks]:
    made = Tasks()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def deployer(tasks: Tasks, signed_in: Callable[[str], Client]) -> Client:
    """An operator who may deploy to the group ``lab``."""
    client = signed_in("operator")
    tasks.group("lab").deployers.add(Group.objects.get(name="operator"))
    return client


@pytest.fixture
def schedule(deployer: Client, tasks: Tasks) -> TaskSchedule:
    """Made of the editor's example: every Sunday at 02:30 in Zurich."""
    tasks.updaters(["edge-1"])
    text = deployer.get(at(ADD)).context["manifest"]
    deployer.post(at(ADD), {"manifest": text, "stage": "apply"})
    return TaskSchedule.objects.get()


def test_the_example_is_previewed_and_applied(deployer: Client, tasks: Tasks) -> None:
    tasks.updaters(["edge-1"], canary=True)
    text = deployer.get(at(ADD)).context["manifest"]
    preview = words(deployer.post(at(ADD), {"manifest": text, "stage": "preview"}))
    assert "would be created" in preview
    assert "Would match 1 device" in preview
    assert not TaskSchedule.objects.exists()
    done = deployer.post(at(ADD), {"manifest": text, "stage": "apply"}, follow=True)
    assert done.redirect_chain[-1][0] == at(ONE, TaskSchedule.objects.get().pk)


def test_the_next_run_is_shown_by_the_clocks_of_its_time_zone(viewer: Client, schedule: TaskSchedule) -> None:
    (row,) = rows(viewer.get(at(LIST)))
    for page in (row, words(viewer.get(at(ONE, schedule.pk)))):
        assert "30 2 * * 0" in page
        assert "in 4 d" in page
        assert "Sun 2026-12-06 02:30 CET" in page
    assert not buttons(viewer.get(at(ONE, schedule.pk)))


def test_a_schedules_page_shows_its_runs_and_what_came_of_the_last_time(
    viewer: Client, schedule: TaskSchedule, tasks: Tasks
) -> None:
    assert "It has made no run yet" in words(viewer.get(at(ONE, schedule.pk)))
    tasks.later(days=4, hours=11, minutes=30)
    services.sweep()
    run = TaskRun.objects.get()
    page = viewer.get(at("tasks_taskschedule_live", schedule.pk))
    assert "Made default/upgrade-lab-weekly-20261206-0130 for 2026-12-06 01:30 UTC" in words(page)
    assert at("tasks_taskrun_change", run.pk) in page.content.decode()
    assert at(ONE, schedule.pk) in viewer.get(at("tasks_taskrun_change", run.pk)).content.decode()


def test_a_schedule_is_suspended_resumed_run_and_deleted(deployer: Client, schedule: TaskSchedule) -> None:
    page = at(ONE, schedule.pk)
    assert buttons(deployer.get(page)) == {"edit", "run-now", "suspend", "remove"}
    assert "No more runs are made" in words(deployer.get(at("tasks_taskschedule_suspend", schedule.pk)))
    deployer.post(at("tasks_taskschedule_suspend", schedule.pk))
    assert "none while it is suspended" in words(deployer.get(page))
    assert buttons(deployer.get(page)) == {"edit", "run-now", "resume", "remove"}
    deployer.post(at("tasks_taskschedule_resume", schedule.pk))
    assert "Sun 2026-12-06 02:30 CET" in words(deployer.get(page))
    done = deployer.post(at("tasks_taskschedule_run-now", schedule.pk), follow=True)
    assert at("tasks_taskrun_change", TaskRun.objects.get().pk) in done.content.decode()
    again = deployer.post(at("tasks_taskschedule_run-now", schedule.pk))
    assert again.status_code == 409
    assert "is under way; end it first, or wait until it is over" in words(again)
    deployer.post(at("tasks_taskschedule_remove", schedule.pk))
    assert not TaskSchedule.objects.exists()
    assert TaskRun.objects.count() == 1


def test_an_edited_manifest_shows_what_differs(deployer: Client, schedule: TaskSchedule) -> None:
    address = at("tasks_taskschedule_edit", schedule.pk)
    text = deployer.get(address).context["manifest"]
    assert "is already so" in words(deployer.post(address, {"manifest": text, "stage": "preview"}))
    changed = text.replace("30 2 * * 0", "0 4 * * 0")
    preview = words(deployer.post(address, {"manifest": changed, "stage": "preview"}))
    assert "would be changed, generation 2" in preview
    assert "+ schedule: 0 4 * * 0" in preview
    deployer.post(address, {"manifest": changed, "stage": "apply"})
    assert "Sun 2026-12-06 04:00 CET" in words(deployer.get(at(ONE, schedule.pk)))


def test_a_viewer_may_not_open_the_editor(viewer: Client, schedule: TaskSchedule) -> None:
    assert viewer.get(at("tasks_taskschedule_edit", schedule.pk)).status_code == 403
    assert viewer.get(at(ADD)).status_code == 403
