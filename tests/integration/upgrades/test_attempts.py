"""What a device says of its attempts, and what it is told before it begins (TSK-4, SYS-3)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from agent.wire.messages import AttemptState
from devices.models import Credential, Device
from devices.services import device_forget
from devices.services.tokens import hash_of
from fleet.core import clock
from fleet.core.models import Event
from tasks import services
from tests.integration.tasks.tasks import Tasks
from upgrades.models import JournalEntry
from upgrades.services import Offer, attempts_offer, attempts_tidy

pytestmark = pytest.mark.database
WORDS = [AttemptState.ACCEPTED, AttemptState.RUNNING, AttemptState.RUNNING, AttemptState.COMPLETED]


@pytest.fixture
def tasks(db: None) -> Iterator[Tasks]:
    made = Tasks()
    with clock.reading(lambda: made.now):
        yield made


def ask(device: Device, uid: object) -> tuple[int, int | None]:
    """Status and remaining seconds."""
    Credential.objects.get_or_create(
        device=device, defaults={"token_hash": hash_of(device.name), "created_at": device.enrolled_at}
    )
    answer = Client().get(f"/api/agent/v1/attempts/{uid}", headers={"Authorization": f"Bearer {device.name}"})
    return answer.status_code, answer.json().get("remaining_seconds")


@pytest.mark.clause("SYS-3")
@pytest.mark.parametrize("seed", range(3))
def test_words_in_any_order_and_twice_lead_to_the_same_end(tasks: Tasks, seed: int) -> None:
    (device,) = tasks.updaters(["edge-1"])
    tasks.run()
    words = [*enumerate(WORDS, start=1)] * 2
    random.Random(seed).shuffle(words)  # noqa: S311  (repeatable, not secret)
    for sequence, state in words:
        tasks.reports_attempt(device, state, sequence=sequence, message=f"word {sequence}")
        services.drain_attempts(limit=1)
    attempt = tasks.attempt(device)
    assert (attempt.state, attempt.message) == ("completed", "word 4")
    assert [entry.number for entry in JournalEntry.objects.filter(attempt=attempt)] == [1, 2, 3, 4]


@pytest.mark.clause("SYS-3")
@pytest.mark.case("R4")
def test_a_word_about_another_devices_attempt_is_dropped_and_told(tasks: Tasks) -> None:
    mine, other = tasks.updaters(["edge-1", "edge-2"])
    tasks.run()
    tasks.reports_attempt(other, AttemptState.COMPLETED, uid=str(tasks.attempt(mine).uid))
    tasks.raw_attempts(other, b"nonsense", 9)
    tasks.reports_attempt(mine, AttemptState.ACCEPTED)
    assert services.drain_attempts(limit=10) == 3
    assert (tasks.attempt(mine).state, tasks.attempt(other).state) == ("accepted", "offered")
    assert JournalEntry.objects.count() == 1
    assert Event.objects.filter(reason="InvalidReport", object_name="edge-2").count() == 1


@pytest.mark.clause("TSK-4")
def test_an_offer_counts_down_and_is_nothing_after_deadline_end_or_withdrawal(tasks: Tasks) -> None:
    device, ended = tasks.updaters(["edge-1", "edge-2"])
    run = tasks.run(tasks.taskrun(deadline=600))
    uid = tasks.attempt(device).uid
    tasks.later(seconds=100)
    assert ask(device, uid) == (200, 500)
    tasks.says_attempt(device, AttemptState.RUNNING)
    assert ask(device, uid) == (200, 500)
    tasks.says_attempt(ended, AttemptState.REFUSED)
    assert ask(ended, tasks.attempt(ended).uid) == (200, 0)
    tasks.later(seconds=500)
    assert ask(device, uid) == (200, 0)
    assert run.deadline_at == tasks.now


@pytest.mark.clause("TSK-4")
def test_what_was_withdrawn_may_not_begin(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    services.taskrun_end(run=run, actor=None)
    assert ask(device, tasks.attempt(device).uid) == (200, 0)


@pytest.mark.clause("TSK-4")
@pytest.mark.parametrize("uid", ["nonsense", "00000000-0000-4000-8000-000000000000", ""])
def test_another_devices_attempt_is_not_found(tasks: Tasks, uid: str) -> None:
    mine, other = tasks.updaters(["edge-1", "edge-2"])
    tasks.run()
    assert ask(other, uid or tasks.attempt(mine).uid) == (404, None)


@pytest.mark.clause("TSK-5")
def test_an_attempt_that_is_offered_while_others_are_tidied_up_stays_offered(tasks: Tasks) -> None:
    done, fresh = tasks.updaters(["edge-1"])[0], tasks.updaters(["edge-2"], role="later")[0]
    tasks.run()
    tasks.says_attempt(done, AttemptState.ACCEPTED)
    late = tasks.taskrun("late")
    late["spec"]["targetSelector"] = {"matchLabels": {"role": "later"}}
    reads: list[str] = []

    def meanwhile(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if sql.startswith("SELECT") and not reads:
            reads.append(sql)
            tasks.run(late)
        return answer

    with connection.execute_wrapper(meanwhile):
        attempts_tidy()
    assert reads
    assert tasks.offered(fresh) == [str(tasks.attempt(fresh).uid)]


@pytest.mark.clause("TSK-5")
def test_a_device_that_was_just_forgotten_is_not_asked_and_holds_up_nobody(tasks: Tasks) -> None:
    there, gone = tasks.updaters(["edge-1", "edge-2"])
    gone_id = gone.pk
    device_forget(device=gone, actor=None)
    offer = Offer("systemUpgradeV1", "default/upgrade", "TaskRun default/upgrade", tasks.now + timedelta(hours=1))
    with transaction.atomic():
        made = attempts_offer(devices={there.pk: "edge-1", gone_id: "edge-2"}, offer=offer)
    assert list(made) == [there.pk]


@pytest.mark.clause("TSK-5")
def test_an_open_attempt_of_any_executor_keeps_a_system_upgrade_waiting(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    offer = Offer("agentUpgradeV1", "default/agent", "agent upgrade of edge-1", tasks.now + timedelta(hours=1))
    with transaction.atomic():
        attempts_offer(devices={device.pk: device.name}, offer=offer)
        assert attempts_offer(devices={device.pk: device.name}, offer=offer) == {}  # who was told that it is free
    run = tasks.run()
    assert run.message == "Waiting for edge-1: waits for agent upgrade of edge-1"
    assert tasks.shown(run) == {"edge-1": "Held"}
