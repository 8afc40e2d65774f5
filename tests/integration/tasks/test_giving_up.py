"""A device that began and is never heard again must not hold its run, or itself, for ever (TSK-5)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agent.wire.messages import AttemptState
from devices.models import Device
from fleet.core.errors import Conflict, NotFound
from fleet.core.models import AuditEntry
from tasks import services
from tasks.models import Phase
from tests.integration.admin.pages import at, buttons, words
from tests.integration.api.rest import Rest, problem
from tests.integration.tasks.tasks import Tasks
from upgrades.models import State

pytestmark = [pytest.mark.clause("TSK-5"), pytest.mark.database]
ONE = "namespaces/default/taskruns/upgrade/"


def _give_up(tasks: Tasks, device: Device) -> None:
    run = tasks.attempt(device).target.run
    services.taskrun_give_up(run=run, device=device.name, actor=None)
    tasks.look(run)


def test_a_given_up_device_fails_its_target_and_is_free_for_another_run(tasks: Tasks) -> None:
    good, silent = tasks.updaters(["edge-1", "edge-2"])
    run = tasks.run()
    tasks.says_attempt(good, AttemptState.COMPLETED)
    tasks.reports_attempt(silent, AttemptState.RUNNING, step="upgrade")
    tasks.says_attempt(silent)
    second = tasks.run(tasks.taskrun("second"))
    assert tasks.message(second, silent) == "waits for TaskRun default/upgrade"

    _give_up(tasks, silent)
    assert tasks.fresh(run).phase == Phase.FAILED
    assert tasks.shown(run) == {"edge-1": "Completed", "edge-2": "Failed"}
    expected = "given up by the system: the device did not say how it went, last heard at upgrade"
    assert expected in tasks.fresh(run).message
    services.sweep()
    assert tasks.shown(second)["edge-2"] == "Released"
    assert tasks.offered(silent) == [str(tasks.attempt(silent).uid)]


@pytest.mark.clause("TSK-3")
def test_a_given_up_canary_ends_its_run_for_good(tasks: Tasks) -> None:
    (canary,) = tasks.updaters(["edge-1"], canary=True)
    (other,) = tasks.updaters(["edge-2"])
    run = tasks.run()
    tasks.says_attempt(canary, AttemptState.ACCEPTED)
    _give_up(tasks, canary)
    assert tasks.fresh(run).phase == Phase.FAILED
    assert tasks.shown(run)["edge-2"] == "NotStarted"
    assert tasks.offered(other) == []


@pytest.mark.parametrize(
    ("later", "state", "shown"),
    [
        (AttemptState.RUNNING, State.GIVEN_UP, "Failed"),
        (AttemptState.COMPLETED, State.COMPLETED, "Completed"),
        (AttemptState.FAILED, State.FAILED, "Failed"),
        (AttemptState.REPAIR_REQUIRED, State.REPAIR_REQUIRED, "Failed"),
    ],
)
def test_what_a_device_says_after_all_is_written_down(
    tasks: Tasks, later: AttemptState, state: State, shown: str
) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.RUNNING)
    _give_up(tasks, device)
    tasks.says_attempt(device, later, message="it was only slow")
    tasks.look(run)
    attempt = tasks.attempt(device)
    assert (attempt.state, tasks.shown(run)["edge-1"], tasks.fresh(run).phase) == (state, shown, Phase.FAILED)
    assert attempt.message.startswith("given up" if state == State.GIVEN_UP else "it was only slow")
    assert attempt.journal.count() == 2
    assert (attempt.ended_at is None) is (state == State.REPAIR_REQUIRED)


def test_only_what_has_begun_is_given_up_and_twice_is_once(tasks: Tasks) -> None:
    fresh, done, silent = tasks.updaters(["edge-1", "edge-2", "edge-3"])
    tasks.run()
    tasks.says_attempt(done, AttemptState.COMPLETED)
    tasks.says_attempt(silent, AttemptState.ACCEPTED)
    with pytest.raises(Conflict, match="is offered; allowed: accepted, running, repair-required or rollback-failed"):
        _give_up(tasks, fresh)
    with pytest.raises(Conflict, match="is completed"):
        _give_up(tasks, done)
    with pytest.raises(NotFound, match="has asked no device 'edge-9'"):
        services.taskrun_give_up(run=tasks.attempt(done).target.run, device="edge-9", actor=None)
    _give_up(tasks, silent)
    _give_up(tasks, silent)
    assert AuditEntry.objects.filter(action="give-up").count() == 1


def test_a_device_that_was_made_anew_instead_of_repaired_is_free_again(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.REPAIR_REQUIRED, message="dpkg was interrupted")
    second = tasks.run(tasks.taskrun("second"))
    _give_up(tasks, device)
    assert tasks.message(run, device) == "given up by the system: it was never said that root has repaired the device"
    assert tasks.shown(tasks.look(second))["edge-1"] == "Released"


def test_a_device_that_still_needs_repair_is_taken_again(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    tasks.run()
    tasks.says_attempt(device, AttemptState.REPAIR_REQUIRED, message="dpkg was interrupted")
    _give_up(tasks, device)
    tasks.says_attempt(device, AttemptState.REPAIR_REQUIRED, message="dpkg was interrupted")
    assert tasks.attempt(device).state == State.REPAIR_REQUIRED
    second = tasks.run(tasks.taskrun("second"))
    assert second.message.endswith("which needs root to run `fleet-updater repair` on the device")


def test_a_device_is_given_up_over_rest(tasks: Tasks) -> None:
    rest = Rest.of(User.objects.create_superuser("ada"))
    begun, offered = tasks.updaters(["edge-1", "edge-2"])
    tasks.run()
    tasks.says_attempt(begun, AttemptState.RUNNING)
    assert rest.call("POST", f"{ONE}give-up/", {"device": "edge-1"}).status_code == 200
    assert tasks.attempt(begun).message.startswith("given up by ada")
    assert "is offered" in problem(rest.call("POST", f"{ONE}give-up/", {"device": "edge-2"}), 409)["detail"]
    assert problem(rest.call("POST", f"{ONE}give-up/", {"device": "edge-9"}), 404)
    assert problem(rest.call("POST", f"{ONE}give-up/", {"devices": "edge-1"}), 422)
    assert tasks.attempt(offered).state == State.OFFERED


def test_an_operator_gives_up_in_the_admin_after_reading_what_it_does(tasks: Tasks, client: Client) -> None:
    client.force_login(User.objects.create_superuser("eve"))
    (device,) = tasks.updaters(["edge-1"])
    tasks.run()
    page = at("upgrades_attempt_change", tasks.attempt(device).pk)
    assert "give-up" not in buttons(client.get(page))
    tasks.says_attempt(device, AttemptState.RUNNING)
    assert "give-up" in buttons(client.get(page))
    tasks.later(hours=3)
    asked = words(client.get(at("upgrades_attempt_give-up", tasks.attempt(device).pk)))
    assert "The device was last heard: 3 h ago" in asked
    assert "Nothing is interrupted on the device" in asked
    done = client.post(at("upgrades_attempt_give-up", tasks.attempt(device).pk), follow=True)
    assert "is waited for no more" in words(done)
    assert "given up by eve" in words(done)
    assert "give-up" not in buttons(client.get(page))
