"""The agent that a device shall run: one attempt, never in a loop, never beside a task (UPG-1, UPG-2, UPG-9, TSK-5)."""

from __future__ import annotations

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.wire.messages import AGENT_UPGRADE_CAPABILITY, ATTEMPT_KIND, AttemptDocument, AttemptState
from devices.models import DesiredItem, Device
from devices.services import device_forget
from fleet.core.errors import Conflict, Invalid
from fleet.core.models import AuditEntry, Event
from tests.integration.upgrades.agents import NEW, OLD, Agents, target
from upgrades import services
from upgrades.models import Attempt, Standing

pytestmark = pytest.mark.database
ONCE = "; it is not tried again until the target changes or an operator retries"


@pytest.mark.clause("UPG-1", "UPG-2")
def test_one_attempt_with_the_whole_target_is_offered_and_is_over_when_the_device_runs_it(agents: Agents) -> None:
    device = agents.machine()
    row = agents.wants(device)
    assert (row.state, row.message) == (Standing.UNDER_WAY, "Agent 1.4.0 is offered; the device has not begun yet")
    item = DesiredItem.objects.get(device=device, kind=ATTEMPT_KIND)
    assert item.document is not None
    document = msgspec.json.decode(bytes(item.document.body), type=AttemptDocument)
    assert (document.executor, document.task, document.agent_upgrade) == ("agentUpgradeV1", "", target())
    assert (agents.attempt(device).begin_until - agents.now).days == 30

    agents.reports_attempt(device, AttemptState.RUNNING, step="readiness", message="waits for the candidate")
    services.reports_drain(limit=10)
    assert agents.stands(device).message == "At readiness: waits for the candidate"
    agents.reports_facts(device, agent_version=NEW)
    assert agents.sweeps(device).state == Standing.UNDER_WAY  # a candidate that speaks is not committed yet
    agents.says_attempt(device, AttemptState.COMPLETED)
    row = agents.stands(device)
    assert (row.state, row.message) == (Standing.CURRENT, "Runs agent 1.4.0, reported since 2026-12-01 14:00 UTC")
    agents.later(days=40)
    assert agents.sweeps(device).message == row.message
    assert agents.attempts(device) == ["completed"]
    reasons = Event.objects.filter(object_name="edge-1").order_by("pk").values_list("reason", flat=True)
    assert list(reasons) == ["AgentUpgradeSet", "AgentUpgradeOffered", "AgentUpgradeDone"]


@pytest.mark.clause("UPG-2")
@pytest.mark.case("U6")
@pytest.mark.parametrize("end", [AttemptState.FAILED, AttemptState.REFUSED])
def test_what_failed_is_not_repeated_until_the_target_changes_or_an_operator_retries(
    agents: Agents, end: AttemptState
) -> None:
    device = agents.machine()
    agents.wants(device)
    agents.reports_attempt(device, end, step="self-test", message="the candidate does not start.")
    services.reports_drain(limit=10)
    row = agents.stands(device)
    said = f"{end.value.capitalize()} at self-test: the candidate does not start{ONCE}"
    assert (row.state, row.message) == (Standing.FAILED, said)
    for _ in range(5):
        agents.later(days=31)
        agents.sweeps(device)
        agents.wants(device)  # the same again
    assert agents.attempts(device) == [end]
    assert agents.offered(device) == []

    services.agent_upgrade_retry(device=device, actor=None)
    assert agents.attempts(device) == [end, "offered"]
    assert agents.stands(device).generation == 1
    agents.says_attempt(device, end)
    agents.wants(device, target("1.4.1"))
    assert agents.attempts(device) == [end, end, "offered"]
    assert agents.stands(device).generation == 2


@pytest.mark.clause("UPG-2")
def test_there_is_nothing_to_retry_while_nothing_is_over(agents: Agents) -> None:
    device = agents.machine()
    with pytest.raises(Conflict, match=r"keeps the agent that it has; set spec.agentUpgrade first"):
        services.agent_upgrade_retry(device=device, actor=None)
    agents.wants(device)
    with pytest.raises(Conflict, match=r"nothing to retry on device edge-1: agent 1.4.0 is offered"):
        services.agent_upgrade_retry(device=device, actor=None)
    agents.reports_facts(device, agent_version=NEW)
    agents.says_attempt(device, AttemptState.COMPLETED)
    with pytest.raises(Conflict, match=r"nothing to retry on device edge-1: runs agent 1.4.0"):
        services.agent_upgrade_retry(device=device, actor=None)


@pytest.mark.clause("UPG-2")
def test_one_that_never_began_in_its_time_is_offered_anew(agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    agents.later(days=29)
    agents.sweeps(device)
    assert agents.attempts(device) == ["offered"]
    agents.later(days=1)
    agents.sweeps(device)
    assert agents.attempts(device) == ["withdrawn", "offered"]
    assert agents.offered(device) == [str(agents.attempt(device).uid)]


@pytest.mark.clause("UPG-2")
@pytest.mark.case("U9")
def test_another_target_takes_back_what_has_not_begun_and_any_version_follows_any_other(agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    row = agents.wants(device, target("1.2.0"))
    assert agents.attempts(device) == ["withdrawn", "offered"]
    assert (row.version, agents.attempt(device).agent_upgrade) == ("1.2.0", msgspec.to_builtins(target("1.2.0")))
    services.agent_upgrade_set(device=device, target=None, actor=None)
    assert agents.attempts(device) == ["withdrawn", "withdrawn"]
    assert agents.offered(device) == []
    assert not hasattr(type(device).objects.get(pk=device.pk), "desired_agent")


@pytest.mark.clause("UPG-2")
def test_what_has_begun_goes_on_and_the_new_target_waits_for_it(agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    agents.says_attempt(device, AttemptState.RUNNING)
    row = agents.wants(device, target("1.5.0"))
    assert (row.state, row.message) == (Standing.WAITING, "Waits for agent upgrade to 1.4.0")
    agents.reports_facts(device, agent_version=NEW)
    agents.says_attempt(device, AttemptState.COMPLETED)
    assert agents.attempts(device) == ["completed", "offered"]


@pytest.mark.clause("UPG-2")
def test_a_device_that_runs_another_agent_than_it_completed_is_not_asked_by_itself(agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    agents.says_attempt(device, AttemptState.COMPLETED)
    row = agents.sweeps(device)
    words = f"The upgrade to agent 1.4.0 completed, but the device reports 1.3.0{ONCE}"
    assert (row.state, row.message) == (Standing.WAITING, words)
    services.agent_upgrade_retry(device=device, actor=None)
    assert agents.attempts(device) == ["completed", "offered"]


@pytest.mark.clause("UPG-2", "UPG-4")
def test_a_device_that_lost_both_agents_is_failed_until_root_repairs_it_or_it_is_given_up(agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    agents.says_attempt(device, AttemptState.ROLLBACK_FAILED, message="neither agent starts")
    row = agents.stands(device)
    words = "Rollback-failed: neither agent starts; run `fleet-updater repair` on the device, as root"
    assert (row.state, row.message) == (Standing.FAILED, words)
    run = agents.run()
    assert "needs root to run `fleet-updater repair`" in agents.message(run, device)
    with pytest.raises(Conflict, match="nothing to retry"):
        services.agent_upgrade_retry(device=device, actor=None)
    services.attempt_give_up(attempt=agents.attempt(device), actor=None)
    agents.sweeps(device)
    services.agent_upgrade_retry(device=device, actor=None)
    assert agents.attempts(device) == ["given-up", "offered"]


@pytest.mark.clause("TSK-5")
def test_a_task_run_and_an_agent_upgrade_wait_for_each_other_and_say_so(agents: Agents) -> None:
    first, second = agents.machines(["edge-1", "edge-2"])
    agents.wants(first)
    run = agents.run()
    assert agents.shown(run) == {"edge-1": "Held", "edge-2": "Released"}
    assert agents.message(run, first) == "waits for agent upgrade to 1.4.0"
    row = agents.wants(second)
    assert (row.state, row.message) == (Standing.WAITING, "Waits for TaskRun default/upgrade")
    assert agents.attempts(second) == []

    agents.reports_facts(first, agent_version=NEW)
    agents.says_attempt(first, AttemptState.COMPLETED)
    agents.look(run)
    assert agents.shown(run)["edge-1"] == "Released"
    agents.says_attempt(second, AttemptState.COMPLETED)
    assert agents.attempts(second) == ["offered"]


@pytest.mark.clause("UPG-9")
@pytest.mark.parametrize(
    ("capabilities", "url", "lacking"),
    [
        (["AptFullUpgradeV1"], "https://r.example.com/a", "AgentUpgradeV1"),
        (["AgentUpgradeV1"], "oci://r.example.com/agent:1.4.0", "OciArtifactV1, which oci:// needs"),
    ],
)
def test_an_updater_that_cannot_is_sent_nothing_until_setup_was_run(
    agents: Agents, capabilities: list[str], url: str, lacking: str
) -> None:
    device = agents.machine()
    agents.reports_facts(device, capabilities=capabilities)
    row = agents.wants(device, target(url=url))
    words = f"The device's updater does not advertise {lacking}"
    assert (row.state, row.message) == (
        Standing.UNABLE,
        f"{words}; run `fleet-agent setup` of a newer release once on the device, as root",
    )
    assert agents.offered(device) == []
    agents.reports_facts(device, capabilities=[AGENT_UPGRADE_CAPABILITY, "OciArtifactV1"])
    agents.sweeps(device)
    assert agents.attempts(device) == ["offered"]


@pytest.mark.clause("UPG-1")
@pytest.mark.case("U7")
def test_an_artifact_of_another_architecture_is_refused_and_never_sent(agents: Agents) -> None:
    device, silent = agents.machines(["edge-1", "edge-2"])
    with pytest.raises(Invalid, match="edge-1: The artifact is for arm64 and the device is amd64; set an agentUpgrade"):
        agents.wants(device, target(architecture="arm64"))
    agents.reports_facts(silent, agent_version="", architecture="", capabilities=[])
    row = agents.wants(silent, target(architecture="arm64"))
    assert (row.state, row.message) == (Standing.WAITING, "Waits for the device's first report")
    agents.reports_facts(silent, agent_version=OLD, architecture="amd64", capabilities=[AGENT_UPGRADE_CAPABILITY])
    assert agents.sweeps(silent).state == Standing.UNABLE
    assert agents.attempts(silent) == []


@pytest.mark.clause("UPG-2")
def test_who_set_cleared_and_retried_is_in_the_audit(agents: Agents) -> None:
    device = agents.machine()
    agents.wants(device)
    agents.wants(device)
    agents.says_attempt(device, AttemptState.FAILED)
    services.agent_upgrade_retry(device=device, actor=None)
    services.agent_upgrade_set(device=device, target=None, actor=None)
    actions = AuditEntry.objects.filter(object_name="edge-1").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["set-agent", "retry-agent", "set-agent"]


@pytest.mark.clause("UPG-2")
def test_many_are_set_judged_and_asked_again_in_a_constant_number_of_statements(agents: Agents) -> None:
    def statements(prefix: str, number: int) -> list[int]:
        devices = agents.machines([f"{prefix}-{index}" for index in range(number)])
        wanted = {device.pk: target() for device in devices}
        counts = []
        for work in (
            lambda: services.agent_upgrades_set(devices=wanted, by="system"),
            lambda: _all_fail(devices),
            services.agents_evaluate,
            lambda: services.agent_upgrades_set(devices=wanted, by="system", again=True),
        ):
            with CaptureQueriesContext(connection) as captured:
                work()
            counts.append(len(captured))
        assert {tuple(agents.attempts(device)) for device in devices} == {("failed", "offered")}
        return counts

    assert statements("few", 2) == statements("many", 12)


def _all_fail(devices: list[Device]) -> None:
    Attempt.objects.filter(device__in=devices).update(state="failed")
    services.agents_evaluate(device_ids=[device.pk for device in devices])


@pytest.mark.clause("UPG-2")
def test_setting_many_leaves_alone_what_is_set_already_and_passes_over_who_is_gone(agents: Agents) -> None:
    same, other, gone = agents.machines(["edge-1", "edge-2", "edge-3"])
    agents.wants(same)
    agents.wants(other, target("1.2.0"))
    ids = [same.pk, other.pk, gone.pk]
    device_forget(device=gone, actor=None)
    done = services.agent_upgrades_set(devices=dict.fromkeys(ids, target()), by="system", again=True)
    assert done == services.AgentsSet(frozenset({other.pk}), frozenset())
    assert (agents.attempts(same), agents.attempts(other)) == (["offered"], ["withdrawn", "offered"])
