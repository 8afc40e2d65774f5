"""An agent is replaced, or whatever stands against it brings the one before it back (UPG-3 to UPG-8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.updater.binary.host import RELEASES, AgentStatus
from agent.updater.binary.simulated import HostFaults
from agent.updater.binary.steps import STEPS
from agent.wire.messages import AttemptState
from agent.wire.updater import Begin, NoteReady, Refusal, Standing
from tests.support.updaters import OTHER, UID
from tests.support.upgrading_agents import UpgradingAgent, target

COMPLETED, FAILED, LOST = AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.ROLLBACK_FAILED


@pytest.fixture
def device(tmp_path: Path) -> UpgradingAgent:
    return UpgradingAgent(tmp_path / "updater")


def assert_old_agent_runs(device: UpgradingAgent, message: str = "") -> None:
    assert device.state is FAILED, device.told()
    assert message in device.message
    assert device.the_host.link == "1.0.0"
    assert device.the_host.running_version == "1.0.0"


@pytest.mark.clause("UPG-3", "UPG-5")
def test_it_takes_every_step_in_its_order_and_the_candidate_stays(device: UpgradingAgent) -> None:
    device.begin()
    device.run()
    assert device.state is COMPLETED
    assert list(dict.fromkeys(record.step for record in device.attempt().records)) == list(STEPS)[:-1]
    assert device.the_host.running_version == "2.0.0"
    assert device.the_host.link == device.candidate
    assert device.message == "Agent 2.0.0 is ready and stays; 1.0.0 is kept"


@pytest.mark.clause("UPG-4")
def test_the_agent_is_asked_for_its_word_only_while_that_commits(device: UpgradingAgent) -> None:
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    standing = device.standing_of()
    assert (standing.needs_ready, standing.version, standing.executor) == (True, "2.0.0", "agentUpgradeV1")
    assert isinstance(device.updater.answer(NoteReady(OTHER, "2.0.0")), Refusal)
    assert isinstance(device.updater.answer(NoteReady(UID, "1.0.0")), Refusal)
    assert device.attempt().is_open
    device.updater.answer(NoteReady(UID, "2.0.0"))
    assert not device.standing_of().needs_ready
    device.run()
    assert device.state is COMPLETED


@pytest.mark.clause("UPG-4")
def test_a_word_that_comes_at_the_last_moment_counts(device: UpgradingAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.clock.forward(600)
    look = device.the_host.agent

    def say_meanwhile() -> AgentStatus:
        device.updater.answer(NoteReady(UID, "2.0.0"))
        return look()

    monkeypatch.setattr(device.the_host, "agent", say_meanwhile)
    device.run()
    assert device.state is COMPLETED, device.told()


BAD = {
    "another architecture": (HostFaults(), target(architecture="arm64"), "preflight", "arm64"),
    "layout": (HostFaults(layout="active is no link; fleet-agent setup"), target(), "preflight", "fleet-agent setup"),
    "damaged active": (HostFaults(damaged={"1.0.0": "fleet-agent was changed"}), target(), "preflight", "was changed"),
    "no space": (HostFaults(free={RELEASES: 10}), target(), "preflight", "needs 100,000,000 bytes and has 10 free"),
    "no archive": (HostFaults(trials={"download": "example.com answered 404"}), target(), "download", "404"),
    "endless download": (HostFaults(hang=["download"]), target(), "download", "more than 120 minutes"),
    "another digest": (HostFaults(verified="sha256 is 11, not 22"), target(), "verify", "sha256 is 11, not 22"),
    "hostile archive": (HostFaults(unpacked="../x leads out of it"), target(), "unpack", "../x leads out of it"),
    "newer format": (HostFaults(formats={"state": 9}), target(), "unpack", "it writes state in format 9"),
    "full disk": (HostFaults(errors={"unpack": "No space left on device"}), target(), "unpack", "No space left"),
    "self-test": (HostFaults(trials={"self-test": "cannot load libssl"}), target(), "self-test", "cannot load libssl"),
    "probe": (HostFaults(trials={"probe": "the control plane answered 401"}), target(), "probe", "401"),
    "hanging probe": (HostFaults(hang=["probe"]), target(), "probe", "5 minutes"),
}


@pytest.mark.clause("UPG-4", "UPG-8")
@pytest.mark.case("U5", "U7")
@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_noticed_before_the_agent_is_stopped(device: UpgradingAgent, name: str) -> None:
    device.host_faults, device.target, step, words = BAD[name]
    device.the_host.faults = device.host_faults
    started = device.the_host.unit.started
    device.begin()
    device.run()
    assert device.attempt().last.step == step
    assert words in device.message
    device.host_faults = device.the_host.faults = HostFaults()
    assert_old_agent_runs(device)
    assert device.the_host.unit.started == started, "it was stopped for nothing"


@pytest.mark.clause("UPG-4")
@pytest.mark.parametrize(
    ("is_fit", "dies", "errors", "words"),
    [
        (False, False, {}, "did not say within 10 minutes that it is ready"),
        (True, True, {}, "did not start"),
        (True, False, {"start_agent": "systemd gave no answer"}, "systemd gave no answer"),
        (True, False, {"switch": "No space left on device"}, "No space left on device"),
        (True, False, {"stop_agent": "systemd gave no answer"}, "systemd gave no answer"),
    ],
)
def test_a_candidate_that_does_not_prove_itself_is_taken_back(
    device: UpgradingAgent, is_fit: bool, dies: bool, errors: dict[str, str], words: str
) -> None:
    device.is_fit = is_fit
    device.begin()
    device.run_to("probe", "ended")
    device.the_host.faults = HostFaults(dies=[device.candidate] if dies else [], errors=errors)
    device.run(lambda: device.attempt().last.step == "restore")
    device.the_host.faults.errors = {}
    device.run()
    assert_old_agent_runs(device, words)
    assert "the agent before it (1.0.0) runs again" in device.message


@pytest.mark.clause("UPG-4")
def test_a_candidate_that_keeps_ending_is_not_waited_for_until_the_limit(device: UpgradingAgent) -> None:
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.the_host.faults.dies = [device.candidate]
    began = device.clock.monotonic()
    device.run_to("restore", "began")
    assert "restarted 3 times" in device.message
    assert device.clock.monotonic() - began < 60


@pytest.mark.clause("UPG-4")
def test_a_restored_agent_has_to_stay_up(device: UpgradingAgent) -> None:
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.run_to("restore", "began")
    device.clock.forward(5.0)
    device.turn()
    device.the_host.faults.dies = ["1.0.0"]
    device.run()
    assert device.state is LOST


@pytest.mark.clause("UPG-4")
def test_when_the_previous_agent_does_not_start_either_root_has_to_help(device: UpgradingAgent) -> None:
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.the_host.faults.dies = ["1.0.0"]
    device.run()
    assert device.state is LOST
    assert device.message.endswith("run as root: fleet-updater repair")
    refused = device.begin(OTHER)
    assert isinstance(refused, Refusal)
    assert refused.reason == "repair-required"
    system = device.updater.answer(Begin(attempt=OTHER, executor="systemUpgradeV1", remaining_seconds=60))
    assert isinstance(system, Refusal)


@pytest.mark.clause("UPG-7")
@pytest.mark.case("U9")
def test_up_and_down_twenty_times_fetches_each_version_once(device: UpgradingAgent) -> None:
    versions = [target("2.0.0"), target("0.9.0")]
    for turn in range(20):
        device.target = versions[turn % 2]
        uid = f"00000000-0000-4000-8000-{turn:012d}"
        device.upgrade(uid)
        assert device.attempt(uid).state is COMPLETED, device.attempt(uid).last
        assert device.the_host.running_version == device.target.version
    assert device.the_host.downloads == 2
    assert len(device.the_host.releases) == 3


@pytest.mark.clause("UPG-7")
def test_candidates_that_fail_cost_no_release_that_has_run(device: UpgradingAgent) -> None:
    device.upgrade(OTHER)
    device.target = target("1.5.0")
    device.upgrade("00000000-0000-4000-8000-000000000001")
    ran = set(device.the_host.releases)
    device.is_fit = False
    for number in range(2, 6):
        device.target = target(f"{number}.9.0")
        device.upgrade(f"00000000-0000-4000-8000-{number:012d}")
        assert set(device.the_host.releases) == ran
    assert len(ran) == 3


@pytest.mark.clause("UPG-7")
def test_what_is_on_the_disk_and_damaged_is_fetched_again(device: UpgradingAgent) -> None:
    device.begin()
    device.run()
    there, device.target = device.candidate, target("3.0.0")
    device.upgrade(OTHER)
    device.the_host.faults.damaged = {there: "fleet-agent was changed"}
    device.target = target()
    device.upgrade("00000000-0000-4000-8000-000000000001")
    assert device.the_host.running_version == "2.0.0"
    assert device.the_host.downloads == 3


@pytest.mark.clause("UPG-1", "SYS-7")
def test_the_same_attempt_with_another_target_is_refused(device: UpgradingAgent) -> None:
    device.begin()
    device.target = target("6.6.6")
    refused = device.begin()
    assert isinstance(refused, Refusal)
    assert refused.reason == "invalid"
    device.target = target()
    assert isinstance(device.begin(), Standing)
    device.run()
    assert device.the_host.running_version == "2.0.0"


@pytest.mark.clause("UPG-1")
@pytest.mark.parametrize("url", ["http://example.com/a", "file:///etc/shadow", "https://u:p@example.com/a"])
def test_an_address_that_the_control_plane_would_refuse_is_refused_here_too(device: UpgradingAgent, url: str) -> None:
    device.target = target(url=url)
    refused = device.begin()
    assert isinstance(refused, Refusal)
    assert refused.reason == "invalid"
    assert "address" in refused.message


@pytest.mark.clause("TSK-5")
def test_a_system_upgrade_waits_for_the_end_of_an_agent_upgrade(device: UpgradingAgent) -> None:
    device.begin()
    refused = device.updater.answer(Begin(attempt=OTHER, executor="systemUpgradeV1", remaining_seconds=60))
    assert isinstance(refused, Refusal)
    assert refused.reason == "busy"


@pytest.mark.clause("UPG-4")
def test_a_setup_that_switches_the_agent_meanwhile_is_not_undone(device: UpgradingAgent) -> None:
    device.begin()
    device.run_to("probe", "ended")
    device.the_host.releases["1.1.0"] = device.the_host.releases["1.0.0"]
    device.the_host.link = "1.1.0"
    device.run()
    assert device.state is FAILED
    assert "leads to 1.1.0 now" in device.message
    assert device.the_host.link == "1.1.0"


@pytest.mark.clause("UPG-6")
def test_a_clock_that_jumps_changes_no_limit(device: UpgradingAgent) -> None:
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.machine.faults.clock_offset = 10 * 365 * 86_400.0
    device.turn()
    device.is_fit = True
    device.run()
    assert device.state is COMPLETED
