"""What devices say about themselves, and who has fallen silent."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.wire import canonical, messages
from devices.models import DesiredHead, Device, Heartbeat, ReportInbox
from devices.services import device_set_canary, device_set_labels, drain_facts, sweep_connectivity
from devices.services.reports import FACTS_KIND, SelfPortrait
from fleet.core.errors import Invalid
from fleet.core.models import Event
from tests.integration.devices.door import Door

pytestmark = pytest.mark.database

FACTS: dict[str, Any] = {
    "labels": {"role": "analyzer"},
    "capabilities": ["PodmanV0"],
    "architecture": "amd64",
    "os": "Debian GNU/Linux 12",
    "kernel": "6.1.0",
    "boot_id": "b-1",
    "agent_version": "0.1.0",
    "updater_version": "",
    "podman_version": "4.3.1",
}


@pytest.mark.clause("DEV-4")
def test_facts_are_taken_in_and_an_operators_label_wins(door: Door) -> None:
    credential = door.enrolled("edge-1")
    device_set_labels(device=door.device("edge-1"), labels={"role": "gateway"}, actor=None)
    door.report(credential, 1, facts=FACTS)
    assert drain_facts() == 1
    device = door.device("edge-1")
    assert {name: getattr(device, name) for name in FACTS if name != "labels"} == {
        name: value for name, value in FACTS.items() if name != "labels"
    }
    assert device.reported_labels == {"role": "analyzer"}
    assert device.labels == {"role": "gateway", "device-id": "edge-1"}
    assert not ReportInbox.objects.filter(kind=FACTS_KIND).exists()


@pytest.mark.clause("TSK-1")
def test_a_claimed_canary_is_ignored_and_said_so_once(door: Door) -> None:
    credential = door.enrolled("edge-1")
    for sequence in (1, 2, 3):
        door.report(credential, sequence, facts={"labels": {"canary": "true", "device-id": "edge-9"}})
        drain_facts()
    device = door.device("edge-1")
    assert device.labels == {"device-id": "edge-1"}
    assert [problem["reason"] for problem in device.problems] == ["LabelIgnored", "LabelIgnored"]
    assert Event.objects.filter(reason="LabelIgnored").count() == 2


def test_only_an_operator_makes_a_canary(door: Door) -> None:
    door.enrolled("edge-1")
    with pytest.raises(Invalid, match=r"labels\.canary: it is set by the control plane only"):
        device_set_labels(device=door.device("edge-1"), labels={"canary": "true"}, actor=None)
    device_set_canary(device=door.device("edge-1"), canary=True, actor=None)
    assert door.device("edge-1").labels == {"canary": "true", "device-id": "edge-1"}
    device_set_canary(device=door.device("edge-1"), canary=False, actor=None)
    assert door.device("edge-1").labels == {"device-id": "edge-1"}


@pytest.mark.clause("DEV-5")
def test_a_silent_device_becomes_stale_then_offline_then_online_again_and_each_is_an_event(door: Door) -> None:
    credential = door.enrolled("edge-1")

    def connectivity() -> str:
        sweep_connectivity()
        return Heartbeat.objects.get().connectivity

    assert connectivity() == "never"
    door.report(credential, 1)
    drain_facts()
    assert connectivity() == "online"
    door.later(seconds=90)
    assert connectivity() == "stale"
    door.later(seconds=210)
    assert connectivity() == "offline"
    assert sweep_connectivity() == 0
    door.report(credential, 2)
    drain_facts()
    assert connectivity() == "online"
    heard = Event.objects.exclude(reason="Enrolled").order_by("id")
    assert list(heard.values_list("reason", flat=True)) == ["Online", "Stale", "Offline", "Online"]


@pytest.mark.case("R11")
def test_a_report_that_comes_twice_or_late_changes_nothing(door: Door) -> None:
    credential = door.enrolled("edge-1")
    door.report(credential, 5, facts=FACTS | {"kernel": "new"})
    drain_facts()
    reply = door.report(credential, 4, facts=FACTS | {"kernel": "old"})
    assert reply.json() == {"sequence": 4, "resume_after": 5}
    door.report(credential, 5, facts=FACTS | {"kernel": "twice"})
    drain_facts()
    assert door.device("edge-1").kernel == "new"


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(1, 6)), twice=st.lists(st.integers(1, 5)), batch=st.integers(1, 4))
def test_any_order_and_any_repetition_ends_in_the_newest_report(
    door: Door, order: list[int], twice: list[int], batch: int
) -> None:
    Device.objects.all().delete()
    device = Device.objects.create(name="edge-1", enrolled_at=door.now)
    Heartbeat.objects.create(device=device, connectivity_since=door.now)
    DesiredHead.objects.create(device=device)
    for sequence in [*order, *twice]:
        portrait = SelfPortrait(facts=messages.Facts(kernel=f"kernel-{sequence}"))
        ReportInbox.objects.create(
            device=device,
            kind=FACTS_KIND,
            sequence=sequence,
            received_at=door.now,
            body=canonical.encode(portrait),
        )
    while drain_facts(limit=batch):
        pass
    assert door.device("edge-1").kernel == "kernel-5"
    assert Heartbeat.objects.get().sequence == 5


@pytest.mark.case("R4")
def test_a_row_that_cannot_be_read_is_dropped_with_an_event_and_holds_up_nobody(door: Door) -> None:
    credential = door.enrolled("edge-1")
    broken = door.enrolled("edge-2")
    door.report(broken, 1)
    ReportInbox.objects.filter(kind=FACTS_KIND).update(body=b"{")
    door.report(credential, 1, facts=FACTS)
    drain_facts()
    assert door.device("edge-1").kernel == "6.1.0"
    assert Event.objects.get(reason="ReportUnreadable").object_name == "edge-2"
    assert not ReportInbox.objects.filter(kind=FACTS_KIND).exists()


@pytest.mark.case("R4")
@pytest.mark.parametrize(("sent", "kept"), [("a\x00b", "a\ufffdb"), ("a\\u0000", "a\\u0000"), ("\\\x00", "\\\ufffd")])
def test_a_character_that_cannot_be_stored_is_replaced_and_holds_up_nobody(door: Door, sent: str, kept: str) -> None:
    door.report(door.enrolled("edge-1"), 1, facts=FACTS | {"os": sent, "labels": {"a": "b\x00"}})
    door.report(door.enrolled("edge-2"), 1, facts=FACTS)
    drain_facts()
    assert door.device("edge-1").os == kept
    assert door.device("edge-2").kernel == "6.1.0"


def test_a_reboot_is_an_event(door: Door) -> None:
    credential = door.enrolled("edge-1")
    for sequence, boot in enumerate(["b-1", "b-1", "b-2"], start=1):
        door.report(credential, sequence, facts=FACTS | {"boot_id": boot})
        drain_facts()
    assert Event.objects.filter(reason="Rebooted").count() == 1


def test_the_statements_of_a_drain_do_not_grow_with_the_devices(door: Door) -> None:
    def statements(first: int, last: int) -> int:
        for number in range(first, last):
            door.report(door.enrolled(f"edge-{number}"), 1, facts=FACTS)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert drain_facts() == last - first
        return len(captured)

    assert statements(0, 3) == statements(3, 30)
