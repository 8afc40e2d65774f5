"""Many at once on real connections: a device is never asked twice, and nothing is lost or dead-locked (TSK-5)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.db.models import Count

from agent.wire.messages import AttemptState
from devices.models import DesiredItem, Device
from devices.services import device_forget
from fleet.core.errors import Conflict
from fleet.core.models import AuditEntry
from fleet.targeting.models import TargetState
from tasks import jobs, services
from tasks.models import Chapter, Phase, TaskRun, TaskTarget
from tests.integration.rollouts.together import together
from tests.integration.tasks.tasks import Tasks
from upgrades.models import OPEN, Attempt, State

pytestmark = [pytest.mark.clause("TSK-5"), pytest.mark.database(transaction=True)]


def _evaluate(pk: int) -> Callable[[], Any]:
    return lambda: services.taskrun_evaluate(run_id=pk)


def _twice_asked(*states: State) -> list[Any]:
    """Devices with more than one attempt in these states."""
    of_device = Attempt.objects.filter(state__in=states).order_by().values("device")
    return list(of_device.annotate(number=Count("pk")).filter(number__gt=1))


def test_two_runs_at_once_ask_each_device_once(tasks: Tasks) -> None:
    tasks.updaters([f"edge-{number}" for number in range(30)])
    first, second = (tasks.apply_run(tasks.taskrun(name)).pk for name in ("one", "two"))
    assert first is not None
    assert second is not None
    assert together(*[_evaluate(first), _evaluate(second)] * 3) == []
    assert _twice_asked(*OPEN) == []
    assert Attempt.objects.count() == DesiredItem.objects.count() == 30
    assert TaskTarget.objects.filter(state=TargetState.HELD).count() == 30
    frozen = Chapter.objects.filter(event=Phase.RUNNING).values_list("run_id", flat=True)
    assert sorted(frozen) == sorted([first, second])
    for device in Device.objects.all():
        tasks.reports_attempt(device, AttemptState.COMPLETED)
    assert together(jobs.drain_attempts, jobs.drain_attempts, jobs.sweep, jobs.sweep) == []
    jobs.sweep()
    assert _twice_asked(*OPEN) == []
    assert Attempt.objects.filter(state=State.OFFERED).count() == 30
    assert Attempt.objects.count() == 60


def test_end_delete_drain_and_evaluation_at_once_leave_a_run_that_is_over(tasks: Tasks) -> None:
    devices = tasks.updaters([f"edge-{number}" for number in range(40)])
    run, other = tasks.run(), tasks.run(tasks.taskrun("other"))
    for device in devices[::2]:
        tasks.reports_attempt(device, AttemptState.ACCEPTED)
    batch = lambda: services.drain_attempts(limit=7)  # noqa: E731
    end = lambda: services.taskrun_end(run=run, actor=None)  # noqa: E731
    delete = lambda: services.taskrun_delete(run=run, actor=None)  # noqa: E731
    forget = lambda: device_forget(device=devices[3], actor=None)  # noqa: E731
    steps = [batch, batch, end, delete, _evaluate(run.pk), _evaluate(other.pk), jobs.sweep, forget]
    assert together(*steps) == []
    jobs.drain_attempts()
    jobs.sweep()
    jobs.sweep()
    assert tasks.fresh(run).phase == Phase.CANCELLED
    assert tasks.fresh(run).deleted_at is not None
    # One that had begun unheard may come to light after its withdrawal; the device itself lets the next one wait.
    assert _twice_asked(State.OFFERED) == _twice_asked(State.ACCEPTED) == []
    begun = {device.name for device in devices[::2]}
    shown = tasks.shown(run)
    assert {name for name, state in shown.items() if state == "Running"} <= begun
    asked = set(other.targets.filter(state=TargetState.RELEASED).values_list("device_name", flat=True))
    assert asked >= {device.name for device in devices[1::2]} - {devices[3].name}
    items = set(DesiredItem.objects.values_list("key", flat=True))
    offered = Attempt.objects.filter(state=State.OFFERED, device__isnull=False).values_list("uid", flat=True)
    assert items >= {str(uid) for uid in offered}


def test_a_withdrawal_and_drains_take_attempts_in_one_order(tasks: Tasks) -> None:
    devices = tasks.updaters([f"edge-{number}" for number in range(200)])
    run = tasks.run()
    Attempt.objects.filter(pk__in=list(Attempt.objects.values_list("pk", flat=True)[::3])).update(step="moved")
    for device in reversed(devices):
        tasks.reports_attempt(device, AttemptState.ACCEPTED)
    batch = lambda: [services.drain_attempts(limit=200) for _ in range(2)]  # noqa: E731
    assert together(batch, batch, lambda: services.taskrun_end(run=run, actor=None)) == []
    assert set(Attempt.objects.values_list("state", flat=True)) == {State.ACCEPTED}
    assert Device.objects.count() == 200


@pytest.mark.clause("TSK-8")
def test_two_who_repeat_a_run_at_once_make_two_runs_and_no_error(tasks: Tasks) -> None:
    tasks.device("edge-1")
    run = tasks.run()
    again = lambda: services.taskrun_recreate(run=run, actor=None)  # noqa: E731
    assert together(again, again, again) == []
    assert set(TaskRun.objects.values_list("name", flat=True)) == {"upgrade", "upgrade-2", "upgrade-3", "upgrade-4"}


@pytest.mark.parametrize("said", [AttemptState.COMPLETED, AttemptState.FAILED])
def test_a_device_that_speaks_while_it_is_given_up_is_believed(tasks: Tasks, said: AttemptState) -> None:
    devices = tasks.updaters([f"edge-{number}" for number in range(6)])
    run = tasks.run()
    for device in devices:
        tasks.says_attempt(device, AttemptState.RUNNING)
        tasks.reports_attempt(device, said)
    given_up: list[str] = []

    def give_up(device: Device) -> None:
        with suppress(Conflict):  # it had spoken already
            services.taskrun_give_up(run=run, device=device.name, actor=None)
            given_up.append(device.name)

    steps = [partial(give_up, device) for device in devices]
    assert together(*steps, jobs.drain_attempts, jobs.drain_attempts, _evaluate(run.pk)) == []
    jobs.drain_attempts()
    jobs.sweep()
    assert set(Attempt.objects.values_list("state", flat=True)) == {said.value}
    assert set(tasks.shown(run).values()) == {"Completed" if said is AttemptState.COMPLETED else "Failed"}
    assert AuditEntry.objects.filter(action="give-up").count() == len(given_up)


@pytest.mark.clause("TSK-4")
def test_the_deadline_and_the_last_words_at_once(tasks: Tasks) -> None:
    devices = tasks.updaters([f"edge-{number}" for number in range(12)])
    run = tasks.run()
    tasks.later(hours=1)
    for device in devices[:6]:
        tasks.reports_attempt(device, AttemptState.COMPLETED)
    batch = lambda: services.drain_attempts(limit=2)  # noqa: E731
    assert together(jobs.sweep, batch, batch, jobs.sweep, batch) == []
    jobs.drain_attempts()
    jobs.sweep()
    states = tasks.shown(run)
    assert {states[device.name] for device in devices[6:]} == {"Failed"}
    assert {states[device.name] for device in devices[:6]} == {"Completed"}
    assert tasks.fresh(run).phase == Phase.FAILED
    assert [event for event in run.history.values_list("event", flat=True) if event == Phase.FAILED] == [Phase.FAILED]
