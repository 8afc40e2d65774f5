"""What the apps above want devices to have."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from devices.models import DesiredDocument, DesiredHead, DesiredItem, Device
from devices.services import mailbox
from tests.integration.devices.door import Door
from tests.integration.devices.test_agent_api import Note
from tests.integration.rollouts.together import together

pytestmark = pytest.mark.database


def fleet(door: Door, size: int) -> list[int]:
    rows = Device.objects.bulk_create(Device(name=f"edge-{n}", enrolled_at=door.now) for n in range(size))
    DesiredHead.objects.bulk_create(DesiredHead(device=row) for row in rows)
    return [row.pk for row in rows]


def put(device_ids: list[int], text: str = "hello", key: str = "1") -> None:
    with transaction.atomic():
        document = mailbox.document_put(Note(text=text))
        mailbox.desired_put(kind="note", key=key, document=document, device_ids=device_ids)


def versions() -> set[int]:
    return set(DesiredHead.objects.values_list("version", flat=True))


def test_a_thousand_devices_share_one_document_and_are_told_once(door: Door) -> None:
    ids = fleet(door, 1000)
    put(ids)
    assert DesiredDocument.objects.count() == 1
    assert DesiredItem.objects.count() == 1000
    assert versions() == {2}
    put(ids)
    assert versions() == {2}
    put(ids, "another")
    assert versions() == {3}
    assert set(DesiredItem.objects.values_list("version", flat=True)) == {3}


@pytest.mark.clause("DEP-14")
def test_a_withdrawn_item_stays_until_its_removal_is_proven(door: Door) -> None:
    ids = fleet(door, 3)
    put(ids)
    assert mailbox.desired_withdraw(kind="note", key="1", device_ids=ids[:2]) == 2
    assert mailbox.desired_withdraw(kind="note", key="1", device_ids=ids[:2]) == 0
    assert mailbox.holders("note", "1").filter(remove=True).count() == 2
    assert mailbox.desired_drop(kind="note", key="1", device_ids=ids) == 2
    assert list(mailbox.holders("note", "1").values_list("device_id", flat=True)) == [ids[2]]
    assert mailbox.desired_withdraw(kind="note", key="1") == 1


def test_a_removal_is_taken_back_by_telling_the_device_again(door: Door) -> None:
    ids = fleet(door, 1)
    put(ids)
    mailbox.desired_withdraw(kind="note", key="1")
    put(ids)
    assert not mailbox.holders("note", "1").get().remove
    assert mailbox.desired_drop(kind="note", key="1", device_ids=ids) == 0


@pytest.mark.case("R6")
@pytest.mark.django_db(transaction=True)
def test_releases_over_the_same_devices_in_opposite_orders_do_not_deadlock(door: Door) -> None:
    ids = fleet(door, 300)
    steps = [
        lambda key=str(number), order=(ids if number % 2 else ids[::-1]): [
            put(order, text=f"{key}-{turn}", key=key) for turn in range(5)
        ]
        for number in range(4)
    ]
    assert together(*steps) == []
    assert DesiredItem.objects.count() == 4 * 300
    assert versions() == {1 + 4 * 5}


def test_the_statements_of_a_release_grow_with_batches_only(door: Door) -> None:
    ids = fleet(door, 2000)

    def statements(device_ids: list[int], key: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            put(device_ids, key=key)
        return len([query for query in captured if not query["sql"].startswith("INSERT")])

    assert statements(ids[:10], "few") == statements(ids, "many")
