"""``fleet-updater repair`` when neither agent could be started: what root sees and what is done (UPG-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.updater.binary.simulated import HostFaults
from agent.updater.repair import Repair
from agent.updater.store import JournalStore
from agent.wire.messages import AttemptState
from agent.wire.updater import Standing
from tests.support.updaters import OTHER, UID
from tests.support.upgrading_agents import UpgradingAgent, target

pytestmark = pytest.mark.clause("UPG-4")


@pytest.fixture
def lost(tmp_path: Path) -> UpgradingAgent:
    """A device that upgraded from 1.0.0 to 2.0.0, and lost both 2.0.0 and its candidate 3.0.0."""
    device = UpgradingAgent(tmp_path / "updater")
    device.upgrade(OTHER)
    device.target = target("3.0.0")
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.the_host.faults.dies = ["2.0.0-200000000000"]
    device.run()
    assert device.state is AttemptState.ROLLBACK_FAILED
    return device


def repair(device: UpgradingAgent) -> tuple[bool, list[str]]:
    said: list[str] = []
    store = JournalStore(device.folder, sync=False)
    return Repair(store, device.machine, device.the_host, said.append, device.clock.forward).run(), said


def test_root_gets_the_agent_from_before_when_it_can_be_started_again(lost: UpgradingAgent) -> None:
    lost.the_host.faults.dies = []
    lost.the_host.stop_agent()
    done, said = repair(lost)
    assert done
    assert said[1:] == [
        "tries 2.0.0-200000000000",
        "repaired: the agent of 2.0.0-200000000000 runs; attempts are taken on again",
    ]
    assert lost.the_host.running_version == "2.0.0"
    assert lost.attempt(UID).state is AttemptState.FAILED
    assert isinstance(lost.begin("00000000-0000-4000-8000-000000000001"), Standing)


def test_otherwise_the_newest_other_release_that_is_whole_and_starts(lost: UpgradingAgent) -> None:
    done, said = repair(lost)
    assert done
    assert said[1:] == [
        "tries 2.0.0-200000000000",
        f"{lost.candidate} cannot be taken: it did not prove itself",
        "tries 1.0.0",
        "repaired: the agent of 1.0.0 runs; attempts are taken on again",
    ]
    assert lost.the_host.link == "1.0.0"


def test_when_none_can_be_started_root_learns_what_to_run_and_the_attempt_waits_on(lost: UpgradingAgent) -> None:
    lost.the_host.faults = HostFaults(dies=list(lost.the_host.releases))
    done, said = repair(lost)
    assert not done
    assert said[-1] == (
        "no release on this device can be started; run as root the setup of an unpacked release: fleet-agent setup, "
        "then run fleet-updater repair again"
    )
    assert lost.attempt(UID).state is AttemptState.ROLLBACK_FAILED


def test_a_later_repair_does_not_find_the_candidate_any_more(lost: UpgradingAgent) -> None:
    repair(lost)
    assert lost.candidate not in lost.the_host.places()
    assert {"1.0.0", "2.0.0-200000000000"} <= set(lost.the_host.places())


def test_a_candidate_that_stays_up_is_no_agent_that_was_proven(lost: UpgradingAgent) -> None:
    lost.the_host.switch(lost.candidate)
    lost.the_host.start_agent()
    lost.clock.forward(60)
    done, said = repair(lost)
    assert done
    assert lost.the_host.link == "1.0.0"
    assert f"{lost.candidate} cannot be taken: it did not prove itself" in said


def test_what_setup_has_brought_back_is_left_alone(lost: UpgradingAgent) -> None:
    lost.the_host.faults.dies = []
    lost.the_host.start_agent()
    lost.clock.forward(60)
    started = lost.the_host.unit.started
    done, said = repair(lost)
    assert done
    assert said[-1].startswith("repaired: the agent of ")
    assert lost.the_host.unit.started == started
