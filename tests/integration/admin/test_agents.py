"""The agent that a device shall run, in the admin: panel, buttons, list and editor (UPG-1, UPG-2, UPG-9)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from django.test import Client

from agent.wire.messages import AttemptState
from fleet.core import clock
from tests.integration.admin.pages import at, buttons, rows, words
from tests.integration.upgrades.agents import Agents, target
from upgrades.models import Attempt, DesiredAgent

pytestmark = pytest.mark.clause("UPG-2", "ADM-2")
DEVICE, LIST, DEVICES = "devices_device_change", "upgrades_desiredagent_changelist", "devices_device_changelist"
FORM = {"version": "1.4.0", "architecture": "amd64", "url": target().url, "maxSize": "30000000", "sha256": "ab" * 32}
OFFERED = "Agent 1.4.0 is offered; the device has not begun yet"


@pytest.fixture
def agents(db: None) -> Iterator[Agents]:
    made = Agents()
    with clock.reading(lambda: made.now):
        yield made


@pytest.mark.clause("UPG-1")
def test_an_operator_sets_an_agent_retries_gives_up_and_lets_the_device_keep_what_it_has(
    operator: Client, agents: Agents
) -> None:
    device = agents.machine()
    page = at(DEVICE, device.pk)
    assert "the device keeps the agent that it has" in words(operator.get(page))
    assert "set-agent" in buttons(operator.get(page))
    assert not {"retry-agent", "keep-agent", "give-up-agent"} & buttons(operator.get(page))
    shown = operator.post(at("devices_device_set-agent", device.pk), FORM, follow=True)
    assert OFFERED in words(shown)
    assert {"set-agent", "keep-agent"} <= buttons(shown)
    agents.says_attempt(device, AttemptState.RUNNING)
    assert "give-up-agent" in buttons(operator.get(page))
    assert "at work on an agent upgrade" in words(operator.get(at("devices_device_forget", device.pk)))
    shown = operator.post(at("devices_device_give-up-agent", device.pk), follow=True)
    assert "Given up by operator" in words(shown)
    assert "retry-agent" in buttons(shown)
    shown = operator.post(at("devices_device_retry-agent", device.pk), follow=True)
    assert OFFERED in words(shown)
    assert at("upgrades_attempt_change", agents.attempt(device).pk) in shown.content.decode()
    operator.post(at("devices_device_keep-agent", device.pk))
    assert not DesiredAgent.objects.exists()
    assert agents.attempts(device) == ["given-up", "withdrawn"]


@pytest.mark.clause("UPG-1", "UPG-9")
def test_the_form_refuses_in_the_words_of_every_entrance(operator: Client, agents: Agents) -> None:
    device = agents.machine()
    address = at("devices_device_set-agent", device.pk)
    wrong = operator.post(address, {**FORM, "architecture": "arm64"})
    assert (wrong.status_code, "The artifact is for arm64 and the device is amd64" in words(wrong)) == (422, True)
    for name, value, said in (
        ("url", "http://example.com/a", "is http:// to example.com, which anybody on the way can change"),
        ("sha256", "zz", 'found "zz"'),
        ("version", "new", 'found "new"'),
    ):
        assert said in words(operator.post(address, {**FORM, name: value})), name
    assert not DesiredAgent.objects.exists()
    agents.reports_facts(device, capabilities=["AptFullUpgradeV1"])
    shown = words(operator.post(address, FORM, follow=True))
    assert "does not advertise AgentUpgradeV1; run `fleet-agent setup` of a newer release once" in shown
    assert "Nothing is sent to it until then" in shown


def test_a_viewer_sees_where_agents_stand_and_changes_nothing(viewer: Client, agents: Agents) -> None:
    first, second = agents.machines(["edge-1", "edge-2"])
    agents.wants(first)
    agents.wants(second)
    agents.says_attempt(second, AttemptState.FAILED, message="it does not start")
    (failed,) = rows(viewer.get(at(LIST), {"state__exact": "failed"}))
    assert "edge-2 error failed 1.3.0 1.4.0 Failed at full-upgrade: it does not start; it is not tried again" in failed
    assert viewer.get(at("upgrades_desiredagent_change", agents.stands(first).pk)).url == at(DEVICE, first.pk)
    assert len(rows(viewer.get(at(DEVICES), {"agent_version__exact": "1.3.0"}))) == 2
    assert not buttons(viewer.get(at(DEVICE, first.pk)))
    for name in ("set-agent", "retry-agent", "keep-agent", "give-up-agent"):
        assert viewer.post(at(f"devices_device_{name}", second.pk), FORM).status_code == 403
    assert agents.attempts(second) == ["failed"]


def test_many_failed_ones_are_retried_at_once(operator: Client, agents: Agents) -> None:
    failed, going = agents.machines(["edge-1", "edge-2"])
    for device in (failed, going):
        agents.wants(device)
    agents.says_attempt(failed, AttemptState.FAILED)
    chosen = {"action": "retry-agent", "_selected_action": [failed.pk, going.pk], "confirmed": "yes"}
    operator.post(at(DEVICES), chosen)
    assert (agents.attempts(failed), agents.attempts(going)) == (["failed", "offered"], ["offered"])


def test_the_editor_takes_a_device_and_shows_what_would_change(operator: Client, agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    wanted = {name: int(value) if name == "maxSize" else value for name, value in FORM.items()} | {"version": "1.5.0"}
    head = {"apiVersion": "fleet.nationtech.io/v1alpha1", "kind": "Device", "metadata": {"name": "edge-1"}}
    text = yaml.safe_dump({**head, "spec": {"agentUpgrade": wanted}})
    preview = words(operator.post(at("tasks_taskrun_add"), {"manifest": text, "stage": "preview"}))
    assert "+ version: 1.5.0" in preview
    done = operator.post(at("tasks_taskrun_add"), {"manifest": text, "stage": "apply"}, follow=True)
    assert "edge-1 configured (generation 2)." in words(done)
    assert "Agent 1.5.0 is offered" in words(done)


@pytest.mark.clause("TSK-8")
def test_an_attempts_page_shows_the_target_and_the_steps_of_an_agent_upgrade(viewer: Client, agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    agents.reports_attempt(device, AttemptState.RUNNING, step="self-test")
    agents.says_attempt(device)
    shown = words(viewer.get(at("upgrades_attempt_change", Attempt.objects.get().pk)))
    steps = "accepted preflight download verify unpack self-test probe stop switch start readiness"
    places = [shown.index(step, shown.index("preflight") - 20) for step in steps.split()]
    assert places == sorted(places)
    assert target().url in shown
    assert "agent upgrade to 1.4.0" in shown
    agents.says_attempt(device, AttemptState.ROLLBACK_FAILED)
    assert "sudo fleet-updater repair" in words(viewer.get(at(DEVICE, device.pk)))
