"""Attempts: their list, and a journal as a timeline; and what a device's page says of its updater."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agent.wire import canonical
from agent.wire.messages import AttemptReport, AttemptState, JournalEntry
from devices.models import Device
from fleet.core import clock
from tests.integration.admin.pages import at, buttons, rows, words
from tests.integration.tasks.tasks import Tasks
from upgrades.models import Attempt

pytestmark = pytest.mark.clause("TSK-8")
LIST, ATTEMPT, DEVICE = "upgrades_attempt_changelist", "upgrades_attempt_change", "devices_device_change"
BEGUN_AT = 1_796_000_000.0


@pytest.fixture
def tasks(db: None) -> Iterator[Tasks]:
    made = Tasks()
    with clock.reading(lambda: made.now):
        yield made


def _told(tasks: Tasks, device: Device, state: AttemptState, lines: list[tuple[str, str, float, str]]) -> Attempt:
    """The device sends this journal: (step, event, seconds after the first line, boot)."""
    entries = [
        JournalEntry(number=number, step=step, event=event, at=BEGUN_AT + after, boot_id=boot, message=f"line {number}")
        for number, (step, event, after, boot) in enumerate(lines, 1)
    ]
    report = AttemptReport(
        attempt=str(tasks.attempt(device).uid), state=state, step=lines[-1][0], message="as told", entries=entries
    )
    tasks.raw_attempts(device, canonical.encode([report]), 1)
    tasks.says_attempt(device)
    return tasks.attempt(device)


def test_a_journal_is_a_timeline_with_durations_and_boots(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    attempt = _told(
        tasks,
        device,
        AttemptState.COMPLETED,
        [
            ("accepted", "noted", 0, "aaaa"),
            ("upgrade", "began", 1, "aaaa"),
            ("upgrade", "ended", 201, "aaaa"),
            ("reboot", "began", 202, "aaaa"),
            ("reboot", "ended", 262, "bbbb"),
            ("verify", "ended", 270, "bbbb"),
        ],
    )
    page = viewer.get(at(ATTEMPT, attempt.pk))
    text = words(page)
    assert "took 3 min 20 s" in text
    assert text.count("New boot") == 1
    assert text.index("line 4") < text.index("New boot") < text.index("line 5")
    assert at("tasks_taskrun_change", run.pk) in page.content.decode()
    assert at(DEVICE, device.pk) in page.content.decode()
    assert not buttons(page)


def test_a_failed_step_says_so_in_words_and_one_that_was_left_was_broken_off(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    tasks.run()
    attempt = _told(
        tasks,
        device,
        AttemptState.FAILED,
        [("upgrade", "began", 50, ""), ("audit", "began", 40, ""), ("audit", "failed", 60, "")],
    )
    text = words(viewer.get(at("upgrades_attempt_live", attempt.pk)))
    assert "upgrade power_off broken off" in text
    assert "audit close failed" in text
    assert "took 20 s" in text


def test_what_a_device_wrote_is_shown_as_text(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    tasks.run()
    attempt = _told(tasks, device, AttemptState.RUNNING, [("<script>alert(1)</script>", "<b>", 0, "<i>")])
    for page in (at(ATTEMPT, attempt.pk), at(LIST), at(DEVICE, device.pk)):
        assert "<script>alert(1)" not in viewer.get(page).content.decode()


def test_a_long_journal_is_shown_from_its_end(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    tasks.run()
    attempt = tasks.attempt(device)
    for first in range(0, 600, 200):
        entries = [JournalEntry(number=first + n, step="upgrade", event="noted", message="x") for n in range(1, 201)]
        report = AttemptReport(attempt=str(attempt.uid), state=AttemptState.RUNNING, step="upgrade", entries=entries)
        tasks.raw_attempts(device, canonical.encode([report]), first + 1)
    tasks.says_attempt(device)
    page = viewer.get(at(ATTEMPT, attempt.pk))
    assert "The last 500 lines" in words(page)
    assert page.content.decode().count('class="hf-event"') == 500


def test_attempts_are_found_by_device_task_and_state_and_are_not_edited(administrator: Client, tasks: Tasks) -> None:
    first, second = tasks.updaters(["edge-1", "edge-2"])
    tasks.run()
    tasks.says_attempt(first, AttemptState.FAILED, message="no space on /boot")
    tasks.says_attempt(second, AttemptState.RUNNING)

    def found(query: str) -> list[str]:
        return sorted(row.split()[0] for row in rows(administrator.get(at(LIST), {"q": query})))

    assert found("edge-1") == ["edge-1"]
    assert found("failed") == ["edge-1"]
    assert found("/boot") == ["edge-1"]
    assert found("default/upgrade") == ["edge-1", "edge-2"]
    assert found("systemUpgrade") == ["edge-1", "edge-2"]
    pk = tasks.attempt(first).pk
    assert administrator.get(at("upgrades_attempt_add")).status_code == 403
    assert administrator.post(at("upgrades_attempt_delete", pk), {"post": "yes"}).status_code == 403
    assert Attempt.objects.filter(pk=pk).exists()


@pytest.mark.clause("TSK-2")
def test_a_devices_page_says_what_its_updater_lacks(viewer: Client, tasks: Tasks) -> None:
    bare = tasks.device("bare")
    text = words(viewer.get(at(DEVICE, bare.pk)))
    assert "No updater reported" in text
    assert "fleet-agent setup" in text
    Device.objects.filter(pk=bare.pk).update(updater_version="1.2.0")
    assert "does not advertise AptFullUpgradeV1" in words(viewer.get(at(DEVICE, bare.pk)))
    (able,) = tasks.updaters(["able"])
    Device.objects.filter(pk=able.pk).update(updater_version="1.2.0")
    text = words(viewer.get(at(DEVICE, able.pk)))
    assert "updater 1.2.0, capable of AptFullUpgradeV1" in text
    assert "Nobody has asked this device" in text


def test_a_devices_page_shows_its_last_attempts_with_their_run(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.FAILED, message="no space on /boot")
    page = viewer.get(at(DEVICE, device.pk))
    assert "no space on /boot" in words(page)
    assert at("tasks_taskrun_change", run.pk) in page.content.decode()
    assert at(ATTEMPT, tasks.attempt(device).pk) in page.content.decode()


def test_who_may_not_see_attempts_is_led_to_none(tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.REPAIR_REQUIRED)
    user = User.objects.create_user("guest", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=("view_taskrun", "view_device")))
    client = Client()
    client.force_login(user)
    address = at(ATTEMPT, tasks.attempt(device).pk)
    assert client.get(address).status_code == 403
    assert client.get(at("upgrades_attempt_live", tasks.attempt(device).pk)).status_code == 403
    for page in (at("index"), at("tasks_taskrun_change", run.pk), at(DEVICE, device.pk)):
        shown = client.get(page)
        assert shown.status_code == 200
        assert address not in shown.content.decode()
    assert "all attempts of this device" not in words(client.get(at(DEVICE, device.pk)))


@pytest.mark.clause("TSK-3")
def test_what_forgetting_a_device_does_to_runs_is_said_before(administrator: Client, tasks: Tasks) -> None:
    (canary,) = tasks.updaters(["edge-1"], canary=True)
    (other,) = tasks.updaters(["edge-2"])
    tasks.run()
    tasks.says_attempt(canary, AttemptState.RUNNING)
    asked = words(administrator.get(at("devices_device_forget", canary.pk)))
    assert "canary of the task run default/upgrade: forgetting it counts as its failure and ends the run" in asked
    assert "It is at work on the upgrade" in asked
    asked = words(administrator.get(at("devices_device_forget", other.pk)))
    assert "The task run default/upgrade counts it as failed" in asked
    assert "at work" not in asked
