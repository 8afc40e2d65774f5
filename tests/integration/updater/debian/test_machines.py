"""What holds for every machine under the updater: the real one and the simulated one obey the same contract."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from agent.updater.debian import DebianMachine
from agent.updater.machine import FOLDERS, Machine
from agent.updater.simulated import SimulatedMachine


@pytest.fixture(params=["debian", "simulated"])
def any_machine(request: pytest.FixtureRequest) -> Machine:
    if request.param == "simulated":
        return SimulatedMachine()
    found: DebianMachine = request.getfixturevalue("machine")
    return found


def test_its_boot_has_an_id_and_a_clock_that_only_goes_on(any_machine: Machine) -> None:
    boot = any_machine.boot_id()
    assert str(uuid.UUID(boot)) == boot == any_machine.boot_id()
    before = any_machine.boottime()
    assert 0 <= before <= any_machine.boottime()
    assert abs(any_machine.now() - time.time()) < 60


def test_every_folder_has_a_file_system_with_free_bytes(any_machine: Machine) -> None:
    volumes = any_machine.volumes()
    assert set(volumes) == set(FOLDERS)
    assert all(volume.filesystem and volume.free_bytes > 0 for volume in volumes.values())


def test_a_clean_machine_has_no_problems_no_lock_and_a_simulation_that_fits_its_folders(any_machine: Machine) -> None:
    assert any_machine.package_problems() == ""
    assert any_machine.lock_holder() == ""
    simulation = any_machine.simulation()
    assert set(simulation.needs) <= set(FOLDERS)
    assert all(isinstance(needed, int) and needed >= 0 for needed in simulation.needs.values())
    assert simulation.removes == ()


def test_it_runs_a_kernel_and_expects_one_or_none(any_machine: Machine) -> None:
    assert any_machine.running_kernel()
    expected = any_machine.expected_kernel()
    assert expected is None or expected == any_machine.running_kernel()


@pytest.mark.clause("SYS-2")
def test_folders_on_one_file_system_are_counted_once(machine: DebianMachine) -> None:
    volumes = machine.volumes()
    same = [folder for folder in FOLDERS if Path(folder).stat().st_dev == Path("/").stat().st_dev]
    assert {volumes[folder].filesystem for folder in same} == {volumes["/"].filesystem}
