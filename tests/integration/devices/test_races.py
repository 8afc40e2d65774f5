"""Two at the same time on real connections: nothing is lost, and nobody gets an error that is no answer (E4, R6)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections, transaction

from devices.models import Credential, DesiredDocument, DesiredHead, DesiredItem, Device, ReenrolmentPermit
from devices.services import (
    device_forget,
    device_reset_credential,
    device_set_labels,
    drain_facts,
    group_create,
    group_set_devices,
    mailbox,
)
from devices.services.upkeep import DOCUMENT_GRACE, documents_prune, epoch_begin
from harness.waiting import wait_until
from tests.integration.devices.door import Door
from tests.integration.devices.test_agent_api import Note
from tests.integration.devices.test_mailbox import fleet, put
from tests.integration.rollouts.together import together

pytestmark = [pytest.mark.database(transaction=True)]


@contextmanager
def meanwhile(step: Callable[[], Any]) -> Iterator[None]:
    """Inside an open transaction: begin ``step`` elsewhere, and go on once it waits for our lock."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            step()
        except BaseException as error:
            raised.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    with transaction.atomic():
        yield
        thread.start()
        if connection.vendor == "postgresql":
            wait_until(lambda: _somebody_waits() or not thread.is_alive(), seconds=20, what="the other waits")
        else:
            time.sleep(0.2)  # SQLite can't say who waits for its one lock
    thread.join(60)
    assert not thread.is_alive()
    assert raised == []


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()")
        return bool(cursor.fetchone()[0])


@pytest.mark.clause("DEV-4")
def test_an_operators_label_is_not_lost_to_a_report_of_the_same_moment(door: Door) -> None:
    credential = door.enrolled("edge-1")
    door.report(credential, 1, facts={"labels": {"role": "analyzer"}})
    with meanwhile(drain_facts):
        device_set_labels(device=door.device("edge-1"), labels={"role": "gateway"}, actor=None)
    device = door.device("edge-1")
    assert device.reported_labels == {"role": "analyzer"}
    assert device.labels == {"role": "gateway", "device-id": "edge-1"}


@pytest.mark.clause("DEV-2")
def test_a_report_that_meets_the_forgetting_of_its_device_is_unauthorised(door: Door) -> None:
    credential = door.enrolled("edge-1")
    answers: list[int] = []
    with meanwhile(lambda: answers.append(door.report(credential, 1).status_code)):
        device_forget(device=door.device("edge-1"), actor=None)
    assert answers == [401]
    assert not Device.objects.exists()


@pytest.mark.clause("DEV-2")
@pytest.mark.case("E3")
def test_a_reset_ends_what_an_enrolment_of_the_same_moment_was_given(door: Door) -> None:
    old = door.enrolled("edge-1")
    device = door.device("edge-1")
    token = door.token()
    replies: list[Any] = []
    with meanwhile(lambda: device_reset_credential(device=device, actor=None)):
        replies.append(door.enrol("edge-1", token, credential=old))
    assert replies[0].status_code == 201
    assert door.get("/desired", replies[0].json()["credential"]).status_code == 401
    assert not Credential.objects.exists()
    assert ReenrolmentPermit.objects.filter(device=device).exists()


@pytest.mark.case("R6")
@pytest.mark.case("E4")
def test_releases_polls_reports_drains_and_forgetting_go_on_together(door: Door) -> None:
    ids = fleet(door, 200)
    credentials = {name: door.enrolled(name) for name in ("one", "two", "three")}
    own = [door.device(name).pk for name in credentials]
    answers: Counter[int] = Counter()

    def talk(name: str) -> Callable[[], None]:
        def step() -> None:
            for sequence in range(1, 15):
                answers[door.get("/desired", credentials[name]).status_code] += 1
                answers[door.report(credentials[name], sequence, facts={"kernel": str(sequence)}).status_code] += 1

        return step

    leaving = list(Device.objects.filter(pk__in=ids[::10]))
    assert (
        together(
            *[talk(name) for name in credentials],
            lambda: [put([*ids, *own], text=str(turn), key="a") for turn in range(6)],
            lambda: [put([*own, *ids[::-1]], text=str(turn), key="b") for turn in range(6)],
            lambda: [epoch_begin() for _ in range(3)],
            lambda: [drain_facts(limit=5) for _ in range(15)],
            lambda: [drain_facts(limit=5) for _ in range(15)],
            lambda: [device_forget(device=device, actor=None) for device in leaving],
        )
        == []
    )
    assert answers == {200: 3 * 14 * 2}
    while drain_facts():
        pass
    assert {door.device(name).kernel for name in credentials} == {"14"}
    assert Device.objects.count() == DesiredHead.objects.count() == 183
    assert DesiredItem.objects.filter(document__hash__isnull=False).count() == 2 * 183
    assert set(DesiredHead.objects.values_list("epoch", "version")) == {(4, 1 + 6 + 6 + 3)}


def test_a_device_that_is_forgotten_can_be_in_no_group(door: Door) -> None:
    door.enrolled("edge-1")
    group = group_create(name="lab", actor=None)
    with meanwhile(lambda: device_forget(device=Device.objects.get(name="edge-1"), actor=None)):
        group_set_devices(group=group, devices=["edge-1"], actor=None)
    assert not Device.objects.exists()
    assert not group.devices.exists()


def test_a_document_that_is_released_again_is_not_pruned(door: Door) -> None:
    ids = fleet(door, 1)
    old = mailbox.document_put(Note(text="hello"))
    mailbox.document_put(Note(text="unused"))
    door.later(days=DOCUMENT_GRACE.days + 1)
    with meanwhile(documents_prune):
        put(ids, "hello")
    documents_prune()
    assert [each.hash for each in DesiredDocument.objects.all()] == [old.hash]
    with transaction.atomic():
        mailbox.desired_withdraw(kind="note", key="1")
    documents_prune()
    assert DesiredDocument.objects.exists()
    door.later(days=DOCUMENT_GRACE.days + 1)
    assert documents_prune() == 1
