"""The disk takes no record any more in the middle of an agent upgrade: full, or read-only after an error of its own."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from agent.updater.attempt import Attempt
from agent.updater.journal import Record
from agent.updater.store import JournalStore
from agent.wire.messages import AttemptState
from tests.support.upgrading_agents import UpgradingAgent

RECORDS = 22


class StubbornStore(JournalStore):
    is_full = False

    def append(self, attempt: Attempt, record: Record) -> Attempt:
        if self.is_full:
            raise OSError(errno.EROFS, "Read-only file system")
        return super().append(attempt, record)


class DeviceWithStubbornDisk(UpgradingAgent):
    def start(self) -> None:
        super().start()
        self.disk = StubbornStore(self.folder, sync=False)
        self.store = self.updater._store = self.disk


@pytest.mark.clause("UPG-4", "UPG-6")
@pytest.mark.parametrize("written", range(1, RECORDS))
def test_whenever_it_stops_taking_records_an_agent_runs_on(tmp_path: Path, written: int) -> None:
    device = DeviceWithStubbornDisk(tmp_path)
    device.begin()
    device.run(lambda: len(device.told()) >= written)
    device.disk.is_full = True
    for _ in range(20):
        device.turn()
    assert device.the_host.running_version, f"nothing runs after {device.told()}"
    device.disk.is_full = False
    device.run()
    assert device.state in (AttemptState.COMPLETED, AttemptState.FAILED)
    assert device.the_host.running_version == ("2.0.0" if device.state is AttemptState.COMPLETED else "1.0.0")


def test_an_upgrade_has_so_many_records(tmp_path: Path) -> None:
    device = UpgradingAgent(tmp_path)
    device.begin()
    device.run()
    assert len(device.told()) == RECORDS
