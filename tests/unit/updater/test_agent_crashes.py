"""The updater, or the whole device, is killed at every moment of an agent upgrade: before and after each call of the
host and around each record. Every end is a documented one, and the device can be reached in it (UPG-6)."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.updater.binary.simulated import HostFaults
from agent.updater.journal import Event
from agent.updater.repair import Repair
from agent.updater.simulated import Faults
from agent.updater.store import JournalStore
from agent.wire.messages import AttemptState
from tests.support.crashes import Fuse, Killed
from tests.support.updaters import UID
from tests.support.upgrading_agents import UpgradingAgent

COMPLETED, FAILED, LOST = AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.ROLLBACK_FAILED
#: The step in which a kill finds the attempt, and how that ends: what the design page says.
AFTER_KILL = {
    **dict.fromkeys(["accepted", "preflight", "download", "verify", "unpack", "self-test", "probe"], COMPLETED),
    **dict.fromkeys(["stop", "switch", "start", "readiness"], FAILED),
}


def crash(
    folder: Path, left: int, come_back: Callable[[UpgradingAgent], None]
) -> tuple[UpgradingAgent, Fuse, tuple[str, bool]]:
    """An upgrade that is cut off at the given moment and goes on to its end; where it was found, and whether the
    candidate had said that it is ready.
    """
    fuse = Fuse(left)
    device = UpgradingAgent(folder, fuse=fuse)
    device.begin()
    found = ("", False)
    try:
        device.run()
    except Killed:
        device.fuse = None
        come_back(device)
        attempt = device.attempt()
        is_ready = any(record.mark == "ready" for record in attempt.records)
        found = attempt.place.step, is_ready
        device.run()
    return device, fuse, found


def moments(tmp_path: Path) -> list[str]:
    """All moments of an upgrade that nothing cuts off."""
    return crash(tmp_path / "whole", -1, UpgradingAgent.start)[1].moments


def test_there_are_moments_in_every_step(tmp_path: Path) -> None:
    seen = moments(tmp_path)
    assert len(seen) > 100
    assert {"before switch", "after switch", "half of stop began", "after stop_agent", "before start_agent"} <= set(
        seen
    )


@pytest.mark.clause("UPG-6")
@pytest.mark.parametrize("come_back", [UpgradingAgent.start, UpgradingAgent.cut_power], ids=["killed", "power lost"])
def test_a_kill_at_any_moment_comes_to_the_documented_end(
    tmp_path: Path, come_back: Callable[[UpgradingAgent], None]
) -> None:
    for left, moment in enumerate(moments(tmp_path), start=1):
        device, _, (step, is_ready) = crash(tmp_path / str(left), left, come_back)
        expected = COMPLETED if is_ready else AFTER_KILL.get(step)
        assert device.state is expected, f"{moment} (in {step}): {device.told()} {device.message}"
        assert_reachable(device)


@pytest.mark.clause("UPG-6")
@pytest.mark.parametrize("step", [step for step in AFTER_KILL if step != "accepted"])
def test_a_device_that_is_a_container_sees_its_hosts_clock_after_a_boot(tmp_path: Path, step: str) -> None:
    """Two weeks since the host's boot are no two weeks in which the step has taken too long."""
    device = UpgradingAgent(tmp_path, faults=Faults(host_uptime=1_209_600.0), is_fit=False)
    device.begin()
    device.run_to(step, "began")
    device.is_fit = True
    device.cut_power()
    device.run()
    assert device.state is AFTER_KILL[step], device.message
    assert_reachable(device)


@pytest.mark.clause("UPG-4", "UPG-6")
@given(
    crashes=st.lists(st.tuples(st.integers(1, 60), st.booleans()), max_size=6),
    is_fit=st.booleans(),
    dies=st.sampled_from([[], ["candidate"], ["1.0.0"], ["candidate", "1.0.0"]]),
    error=st.sampled_from(["", "stop_agent", "switch", "start_agent", "unpack", "observe", "agent", "tidy", "active"]),
)
@settings(max_examples=100, deadline=None)
def test_however_often_and_whenever_it_crashes_it_ends_and_root_can_always_help(
    crashes: list[tuple[int, bool]], is_fit: bool, dies: list[str], error: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        device = UpgradingAgent(Path(folder), is_fit=is_fit)
        device.begin()
        places = [device.candidate if name == "candidate" else name for name in dies]
        for index, (moments_until, is_power_loss) in enumerate(crashes):
            # An agent that ran goes on; what can't be started any more shows when it is started.
            device.the_host.faults = HostFaults(errors={error: "broken"} if error and index % 2 else {})
            device.fuse = Fuse(moments_until)
            device.start()
            with contextlib.suppress(Killed):
                device.run()
            device.fuse = None
            if is_power_loss:
                device.cut_power()
        device.the_host.faults = HostFaults(dies=places)
        device.start()
        device.run()
        device.the_host.faults = HostFaults()
        if device.state is LOST:
            assert repair(device)
        elif device.the_host.unit.started is None:
            raise AssertionError(f"nobody starts the agent: {device.told()}")
        assert_reachable(device)


@pytest.mark.clause("UPG-6")
def test_a_journal_that_is_spoilt_anywhere_still_ends_with_an_agent(tmp_path: Path) -> None:
    device = _waiting(tmp_path / "whole")
    for line in range(1, len(_lines(device))):
        device = _waiting(tmp_path / str(line))
        lines = _lines(device)
        spoilt = lines[line].replace(b'"', b"'")
        _journal(device).write_bytes(b"".join([*lines[:line], spoilt, *lines[line + 1 :]]))
        device.start()
        device.run()
        assert device.state is FAILED, device.told()
        assert_reachable(device)


def _waiting(folder: Path) -> UpgradingAgent:
    """A device that waits for a candidate which never becomes ready."""
    device = UpgradingAgent(folder, is_fit=False)
    device.begin()
    device.run_to("readiness", "began")
    return device


def _journal(device: UpgradingAgent) -> Path:
    (path,) = (device.folder / "attempts").glob("*.journal")
    return path


def _lines(device: UpgradingAgent) -> list[bytes]:
    return _journal(device).read_bytes().splitlines(keepends=True)


def repair(device: UpgradingAgent) -> bool:
    store = JournalStore(device.folder, sync=False)
    return Repair(store, device.machine, device.the_host, lambda words: None, device.clock.forward).run()


def assert_reachable(device: UpgradingAgent) -> None:
    """An agent runs: the candidate exactly when it was committed."""
    attempt = device.attempt(UID)
    assert attempt.state in (COMPLETED, FAILED)
    runs = device.the_host.running_version
    assert runs == ("2.0.0" if attempt.state is COMPLETED else "1.0.0") or attempt.is_damaged or _is_repaired(device)
    assert runs
    assert device.the_host.link in device.the_host.releases


def _is_repaired(device: UpgradingAgent) -> bool:
    last = device.attempt().last
    return (last.step, last.event) == ("repair", Event.ENDED)
