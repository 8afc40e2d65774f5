"""A restore that the disk does not let through still leaves an agent running (UPG-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.updater.binary.simulated import HostFaults
from agent.wire.messages import AttemptState
from tests.support.upgrading_agents import UpgradingAgent
from tests.unit.updater.test_agent_full_disk import DeviceWithStubbornDisk


@pytest.mark.clause("UPG-4", "UPG-6")
def test_a_link_that_cannot_be_switched_back_leaves_an_agent_running(tmp_path: Path) -> None:
    device = UpgradingAgent(tmp_path)
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.the_host.faults = HostFaults(errors={"switch": "No space left on device"})
    device.run()
    assert device.state is AttemptState.ROLLBACK_FAILED
    assert device.the_host.running_version, device.message


@pytest.mark.clause("UPG-4", "UPG-6")
def test_a_disk_that_becomes_read_only_in_restore_leaves_an_agent_running(tmp_path: Path) -> None:
    device = DeviceWithStubbornDisk(tmp_path)
    device.is_fit = False
    device.begin()
    device.run_to("readiness", "began")
    device.the_host.faults = HostFaults(errors={"switch": "Read-only file system"})
    device.run_to("restore", "began")
    device.disk.is_full = True
    for _ in range(20):
        device.turn()
    assert device.the_host.running_version
