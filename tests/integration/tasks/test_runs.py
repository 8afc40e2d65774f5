"""From a manifest to the last device: canaries, deadlines, one thing at a time (TSK-2 to TSK-5)."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.wire.messages import AttemptState
from devices.models import Device, Heartbeat
from devices.services import device_forget
from tasks import services
from tasks.models import Phase, TaskRun
from tasks.selectors import run_status, runs_to_evaluate
from tests.integration.tasks.tasks import Tasks
from upgrades.models import Attempt, State

pytestmark = pytest.mark.database
ACCEPTED, COMPLETED, FAILED = AttemptState.ACCEPTED, AttemptState.COMPLETED, AttemptState.FAILED
#: Columns of the widest of the tables that a release writes, and how many of them get a row per device: SQLite limits
#: the parameters of a statement.
WIDEST, INSERTS = 15, 4


@pytest.mark.clause("TSK-2")
def test_a_device_without_the_capability_is_a_failed_target_and_never_sent_it(tasks: Tasks) -> None:
    able, unable = tasks.updaters(["edge-1"])[0], tasks.device("edge-2")
    run = tasks.run()
    assert tasks.shown(run) == {"edge-1": "Released", "edge-2": "Failed"}
    assert "AptFullUpgradeV1" in tasks.message(run, unable)
    assert (len(tasks.offered(able)), tasks.offered(unable)) == (1, [])
    tasks.says_attempt(able, COMPLETED)
    assert tasks.fresh(run).phase == Phase.FAILED
    assert tasks.fresh(run).message.startswith("edge-2 failed: the device does not advertise")


@pytest.mark.clause("TSK-2")
def test_nothing_matches_without_a_group_source_and_the_run_says_so(tasks: Tasks, settings: object) -> None:
    settings.FLEET_GROUP_SOURCE = None  # type: ignore[attr-defined]  # pytest-django's fixture
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    assert (run.phase, tasks.offered(device)) == (Phase.PENDING, [])
    assert run.message.startswith("No group source is configured")


@pytest.mark.clause("TSK-3")
def test_the_rest_is_released_when_every_canary_completed(tasks: Tasks) -> None:
    first, second = tasks.updaters(["edge-1", "edge-2"], canary=True)
    (rest,) = tasks.updaters(["edge-3"])
    run = tasks.run()
    assert (run.phase, tasks.offered(rest)) == (Phase.CANARY, [])
    tasks.says_attempt(first, ACCEPTED, COMPLETED)
    assert tasks.offered(rest) == []
    assert tasks.fresh(run).message == "Waiting for canary edge-2: has not begun yet"
    tasks.says_attempt(second, COMPLETED)
    assert len(tasks.offered(rest)) == 1
    assert tasks.fresh(run).phase == Phase.RUNNING
    tasks.says_attempt(rest, COMPLETED)
    assert (tasks.fresh(run).phase, tasks.fresh(run).message) == (Phase.COMPLETED, "Done: 3 devices completed")
    assert tasks.offered(first) == tasks.offered(rest) == []


@pytest.mark.clause("TSK-3")
def test_a_failed_canary_stops_further_release_for_good(tasks: Tasks) -> None:
    first, second = tasks.updaters(["edge-1", "edge-2"], canary=True)
    (rest,) = tasks.updaters(["edge-3"])
    run = tasks.run()
    tasks.says_attempt(second, ACCEPTED)
    tasks.says_attempt(first, AttemptState.REPAIR_REQUIRED, message="dpkg was interrupted")
    assert tasks.fresh(run).phase == Phase.FAILED
    assert tasks.fresh(run).message == (
        "Canary edge-1 failed: dpkg was interrupted; nothing more is released, and completed upgrades stay"
    )
    tasks.says_attempt(first, COMPLETED)  # root repaired it
    tasks.says_attempt(second, COMPLETED)
    services.sweep()
    assert tasks.shown(run) == {"edge-1": "Completed", "edge-2": "Completed", "edge-3": "NotStarted"}
    assert (tasks.fresh(run).phase, tasks.offered(rest)) == (Phase.FAILED, [])


@pytest.mark.clause("TSK-4", "TSK-3")
def test_after_the_deadline_nothing_starts_and_what_has_begun_completes_late(tasks: Tasks) -> None:
    begun, silent = tasks.updaters(["edge-1", "edge-2"], canary=True)
    (rest,) = tasks.updaters(["edge-3"])
    run = tasks.run(tasks.taskrun(deadline=3600))
    tasks.says_attempt(begun, ACCEPTED)
    tasks.later(seconds=3599)
    services.sweep()
    assert tasks.fresh(run).phase == Phase.CANARY
    tasks.later(seconds=1)
    services.sweep()
    assert tasks.shown(run) == {"edge-1": "Running", "edge-2": "Failed", "edge-3": "NotStarted"}
    assert tasks.fresh(run).phase == Phase.FAILED
    assert tasks.fresh(run).message == (
        "The deadline passed at 15:00 UTC: 0 of 3 devices completed, 1 failed, 1 not started, "
        "1 still at work and not interrupted"
    )
    tasks.later(minutes=5)
    tasks.says_attempt(begun, COMPLETED)
    assert tasks.shown(run)["edge-1"] == "Completed (late)"
    assert (tasks.fresh(run).phase, tasks.offered(silent), tasks.offered(rest)) == (Phase.FAILED, [], [])


@pytest.mark.clause("TSK-4")
def test_a_device_that_had_begun_unheard_completes_late_too(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.later(hours=2)
    services.sweep()
    assert tasks.shown(run) == {"edge-1": "Failed"}
    tasks.says_attempt(device, ACCEPTED, COMPLETED)
    assert tasks.shown(run) == {"edge-1": "Completed (late)"}


@pytest.mark.clause("TSK-5")
def test_the_second_run_waits_for_the_device_and_says_for_what(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    first, second = tasks.run(), tasks.run(tasks.taskrun("other"))
    assert tasks.look(first).message == "Waiting for edge-1: has not begun yet"  # R12: never itself
    assert second.message == "Waiting for edge-1: waits for TaskRun default/upgrade"
    assert len(tasks.offered(device)) == 1
    tasks.says_attempt(device, COMPLETED)
    services.sweep()
    assert tasks.shown(second) == {"edge-1": "Released"}
    assert tasks.attempt(device).title == "TaskRun default/other"


@pytest.mark.clause("TSK-3")
def test_a_forgotten_device_has_failed(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    device_forget(device=device, actor=None)
    services.sweep()
    assert tasks.fresh(run).message.startswith("edge-1 failed: the device was forgotten")


@pytest.mark.clause("TSK-3", "TSK-8")
@pytest.mark.slow
def test_a_thousand_devices_with_ten_canaries_show_the_right_order(tasks: Tasks) -> None:
    canaries = tasks.updaters([f"canary-{number}" for number in range(10)], canary=True)
    rest = tasks.updaters([f"edge-{number}" for number in range(990)])
    run = tasks.run()
    for device in canaries:
        tasks.says_attempt(device, ACCEPTED, COMPLETED)
    for attempt in Attempt.objects.filter(device__in=rest).select_related("device"):
        tasks.reports_attempt(attempt.device, COMPLETED, uid=str(attempt.uid))
    services.drain_attempts(limit=1000)
    assert [(each.event, each.message) for each in tasks.fresh(run).history.all()] == [
        ("Canary", "1000 devices frozen, 10 of them canary"),
        ("Released", "offered to 10 canaries"),
        ("Running", "every canary completed"),
        ("Released", "offered to 990 devices"),
        ("Completed", "Done: 1000 devices completed"),
    ]
    last_canary = max(Attempt.objects.filter(device__in=canaries).values_list("pk", flat=True))
    assert Attempt.objects.filter(device__in=rest, pk__lt=last_canary).count() == 0


def test_the_number_of_statements_does_not_grow_with_the_fleet(tasks: Tasks) -> None:
    def statements(prefix: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            tasks.run(tasks.taskrun(prefix))
        return len(seen)

    tasks.updaters(["a-1"])
    few = statements("few")
    services.taskrun_end(run=TaskRun.objects.get(name="few"), actor=None)
    tasks.updaters([f"b-{number}" for number in range(100)])
    batches = 100 * WIDEST // (connection.features.max_query_params or 100 * WIDEST * 2)
    assert statements("many") - few <= INSERTS * batches


def test_the_number_of_statements_of_a_drain_does_not_grow_with_reports(tasks: Tasks) -> None:
    def statements(devices: list[Device]) -> int:
        for device in devices:
            tasks.reports_attempt(device, ACCEPTED)
        with CaptureQueriesContext(connection) as seen:
            services.drain_attempts(limit=1000)
        return len(seen)

    devices = tasks.updaters([f"edge-{number}" for number in range(60)])
    tasks.run()
    assert statements(devices[2:]) <= statements(devices[:2])


def test_the_number_of_statements_of_a_status_does_not_grow_with_the_fleet(tasks: Tasks) -> None:
    tasks.updaters(["a-1"])
    with CaptureQueriesContext(connection) as few:
        run_status(tasks.run(tasks.taskrun("few")))
    services.taskrun_end(run=TaskRun.objects.get(name="few"), actor=None)
    tasks.updaters([f"b-{number}" for number in range(40)])
    run = tasks.run(tasks.taskrun("many"))
    with CaptureQueriesContext(connection) as many:
        run_status(run)
    assert len(many) <= 4 < len(few)


def test_a_run_that_is_over_is_not_looked_at_for_ever(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    Attempt.objects.update(state=State.COMPLETED)  # taken in, and the process died before the run was evaluated
    device_forget(device=device, actor=None)
    services.sweep()
    assert tasks.fresh(run).phase == Phase.FAILED
    assert runs_to_evaluate() == []


@pytest.mark.clause("TSK-4")
def test_what_root_repaired_counts_and_is_late_after_the_deadline(tasks: Tasks) -> None:
    first, second = tasks.updaters(["edge-1", "edge-2"])
    run = tasks.run()
    tasks.says_attempt(first, AttemptState.REPAIR_REQUIRED, message="dpkg was interrupted")
    other = tasks.run(tasks.taskrun("other"))
    assert tasks.message(other, first) == (
        "waits for TaskRun default/upgrade, which needs root to run `fleet-updater repair` on the device"
    )
    assert tasks.fresh(run).phase == Phase.RUNNING
    tasks.says_attempt(second, COMPLETED)
    assert tasks.fresh(run).phase == Phase.FAILED
    tasks.later(hours=2)
    tasks.says_attempt(first, COMPLETED)
    assert tasks.shown(run) == {"edge-1": "Completed (late)", "edge-2": "Completed"}
    assert (tasks.fresh(run).phase, tasks.fresh(run).completed, tasks.fresh(run).failed) == (Phase.FAILED, 2, 0)


@pytest.mark.clause("TSK-4")
def test_a_repair_in_time_lets_a_live_run_complete(tasks: Tasks) -> None:
    first, second = tasks.updaters(["edge-1", "edge-2"])
    run = tasks.run()
    tasks.says_attempt(first, AttemptState.REPAIR_REQUIRED, message="dpkg was interrupted")
    tasks.says_attempt(first, COMPLETED)
    tasks.says_attempt(second, COMPLETED)
    assert tasks.fresh(run).message == "Done: 2 devices completed"


@pytest.mark.clause("TSK-5")
def test_the_sentence_for_a_silent_device_says_since_when_and_what_to_do(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, ACCEPTED)
    Heartbeat.objects.filter(device=device).update(connectivity="offline", connectivity_since=tasks.now)
    assert tasks.look(run).message == (
        "Waiting for edge-1: offline since 14:00 UTC; if edge-1 will not come back: "
        "fleetctl taskrun give-up default/upgrade edge-1"
    )
