"""What comes from a candidate runs as the agent's user with few rights, and the agent's own unit obeys (UPG-3)."""

from __future__ import annotations

import itertools
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from agent.releases.description import place
from agent.setup import units
from agent.setup.layout import AGENT_STATE, AGENT_UNIT, STAGING, UPDATER_STATE, UPDATER_UNIT, USER
from agent.updater.binary.host import AgentStatus, Trial
from agent.updater.debian import agent_unit, transient
from agent.updater.debian.disk import Disk
from agent.updater.debian.trials import Trials
from agent.updater.machine import JobState, JobStatus, MachineError
from agent.wire.manifest import AgentUpgrade
from harness.vm.nspawn import Machine
from harness.waiting import wait_until
from tests.support.hosts import run_the_agent, try_candidates

pytestmark = pytest.mark.clause("UPG-3")
TARGET = AgentUpgrade("9.0.0", "amd64", "https://example.com/release.tar.gz", 100_000, "0" * 64)
_PROGRAM = f"/opt/harmony-fleet/releases/{place(TARGET)}/fleet-agent"
_UPDATER = "/opt/harmony-fleet/updater/fleet-updater"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def debian(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine([bare], tmp_path_factory.mktemp("host")) as machine:
        machine.start()
        machine.run("useradd", "--system", "--user-group", "--no-create-home", USER)
        machine.run("mkdir", "--parents", STAGING, os.path.dirname(_PROGRAM), os.path.dirname(_UPDATER))
        yield machine


@pytest.fixture
def carried(debian: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Commands for systemd are carried into the machine."""

    def output(command: Sequence[str], *, codes: Sequence[int] = (0,)) -> str:
        done = debian.run(*command, check=False)
        if done.returncode not in codes:
            raise MachineError(f"{' '.join(command[:2])} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    monkeypatch.setattr(transient, "output", output)
    monkeypatch.setattr(agent_unit, "output", output)
    return debian


@pytest.fixture
def trials(carried: Machine, tmp_path: Path) -> Trials:
    """The host's trials; what they print is read from outside."""
    folder = carried.root / "var/output"
    inside = carried.inside(str(folder))
    if not inside.is_symlink():
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.symlink_to("/var/output")
    return Trials(folder, _Inside(carried), USER)


class _Inside(Disk):
    """The device's disk, prepared from inside."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(Path("/var/lib/harmony-fleet/updater"), USER)
        self._machine = machine

    def prepare(self, attempt: str, target: AgentUpgrade) -> None:
        self._machine.run("install", "--directory", f"--owner={USER}", "--mode=700", f"{STAGING}/{attempt}")


def _write(machine: Machine, path: str, script: str, mode: int = 0o755) -> None:
    there = machine.root / path.lstrip("/")
    there.unlink(missing_ok=True)
    there.write_text(f"#!/bin/sh\n{textwrap.dedent(script)}")
    there.chmod(mode)


Try = Callable[..., JobStatus]


@pytest.fixture
def attempt() -> str:
    return f"00000000-0000-0000-0000-{next(_numbers):012}"


@pytest.fixture
def tried(carried: Machine, trials: Trials, attempt: str) -> Try:
    """How a trial ends whose program is this script."""

    def run(trial: Trial, script: str, mode: int = 0o755) -> JobStatus:
        _write(carried, _UPDATER if trial is Trial.DOWNLOAD else _PROGRAM, script, mode)
        trials.start(attempt, trial, TARGET)
        wait_until(lambda: trials.observe(attempt, trial).state is JobState.ENDED, seconds=30, what="it has ended")
        return trials.observe(attempt, trial)

    return run


def test_trials_obey_the_contract(carried: Machine, trials: Trials) -> None:
    for program in (_PROGRAM, _UPDATER):
        _write(carried, program, "sleep 1; echo fleet-agent 9.0.0")
    try_candidates(trials, TARGET, lambda holds: wait_until(holds, seconds=30, what="it is so"))


@pytest.mark.parametrize("trial", Trial)
def test_it_is_the_agents_user_who_can_become_nobody_else(tried: Try, trial: Trial) -> None:
    status = tried(trial, "id -un; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; pwd; exit 7")
    assert status.exit_code == 7
    words = status.tail.split()
    assert words == [USER, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "/"]


@pytest.mark.parametrize("trial", Trial)
def test_it_writes_nowhere_but_the_download_into_its_own_folder(tried: Try, attempt: str, trial: Trial) -> None:
    """What it writes to ``/tmp`` is in its own memory."""
    own, temporary = f"{STAGING}/{attempt}", "/tmp"  # noqa: S108
    places = [own, temporary, STAGING, "/var/lib", "/opt/harmony-fleet", "/etc", "/dev/shm", "/var/tmp", "/run"]  # noqa: S108
    script = "".join(f"(: > {place}/mine) 2>/dev/null && echo {place}\n" for place in places)
    assert tried(trial, f"{script}exit 0").tail.split() == [own, temporary][trial is not Trial.DOWNLOAD :]


def test_the_download_gets_its_job_and_never_more_bytes_than_the_target_has(
    tried: Try, attempt: str, carried: Machine
) -> None:
    status = tried(Trial.DOWNLOAD, f'echo "$*"; exec head -c 100001 /dev/zero > {STAGING}/{attempt}/archive')
    assert status.tail.splitlines()[0] == f"fetch {STAGING}/{attempt}.json"
    assert status.exit_code != 0
    assert carried.inside(f"{STAGING}/{attempt}/archive").stat().st_size == TARGET.maxSize


def test_what_a_candidate_prints_fills_no_disk(tried: Try, carried: Machine, attempt: str) -> None:
    tried(Trial.SELF_TEST, "exec head -c 9000000 /dev/zero")
    log = carried.root / f"var/output/harmony-fleet-try-{attempt}-self-test.log"
    assert log.stat().st_size == 1_048_576


@pytest.mark.parametrize(("trial", "can"), [(Trial.SELF_TEST, False), (Trial.PROBE, True), (Trial.DOWNLOAD, True)])
def test_only_what_has_to_reach_somebody_has_the_network(tried: Try, trial: Trial, can: bool) -> None:
    script = "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) or exit 1; print \"it can\"'"
    assert tried(trial, script).tail == ("it can" if can else "")


#: The head of a program for arm64.
_OTHER_MACHINE = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(100)


@pytest.mark.case("U7")
@pytest.mark.parametrize(("program", "mode"), [(b"#!/bin/sh\n", 0o644), (_OTHER_MACHINE, 0o755)])
def test_what_cannot_be_executed_says_so(carried: Machine, trials: Trials, program: bytes, mode: int) -> None:
    attempt = f"00000000-0000-0000-0000-{next(_numbers):012}"
    path = carried.root / _PROGRAM.lstrip("/")
    path.unlink(missing_ok=True)
    path.write_bytes(program)
    path.chmod(mode)
    trials.start(attempt, Trial.SELF_TEST, TARGET)
    status = trials.observe(attempt, Trial.SELF_TEST)
    assert (status.state, status.exit_code) == (JobState.ENDED, 203)
    assert status.tail == "the program cannot be executed on this device"


def test_a_trial_that_hangs_is_stopped_and_started_anew(
    tried: Try, trials: Trials, carried: Machine, attempt: str
) -> None:
    _write(carried, _PROGRAM, "trap '' TERM; echo hangs; exec sleep 600")
    trials.start(attempt, Trial.PROBE, TARGET)
    trials.start(attempt, Trial.PROBE, TARGET)
    assert trials.observe(attempt, Trial.PROBE).state is JobState.RUNNING
    trials.stop(attempt, Trial.PROBE)
    assert trials.observe(attempt, Trial.PROBE).state is JobState.ABSENT
    assert tried(Trial.PROBE, "echo fleet-agent 9.0.0; exit 0") == JobStatus(JobState.ENDED, tail="fleet-agent 9.0.0")


# The agent's own unit -------------------------------------------------------------------------------------------------


def test_a_device_without_the_unit_says_so(carried: Machine) -> None:
    with pytest.raises(MachineError, match=r"harmony-fleet-agent.service"):
        agent_unit.start()


@pytest.fixture
def unit(carried: Machine) -> Iterator[Callable[[str], None]]:
    """Let the agent be this script; it is started anew quickly."""
    carried.run(
        "ln", "--symbolic", "--force", "--no-dereference", os.path.dirname(_PROGRAM), "/opt/harmony-fleet/active"
    )
    folder = carried.root / "etc/systemd/system"
    (folder / AGENT_UNIT).write_text(units.texts(999)[AGENT_UNIT])
    (folder / f"{AGENT_UNIT}.d").mkdir(exist_ok=True)
    (folder / f"{AGENT_UNIT}.d/quick.conf").write_text("[Service]\nRestartSec=50ms\n")
    carried.run("mkdir", "--parents", AGENT_STATE)
    carried.run("systemctl", "daemon-reload")
    yield lambda script: _write(carried, _PROGRAM, script)
    carried.run("systemctl", "stop", AGENT_UNIT)


class _Unit:
    stop_agent = staticmethod(agent_unit.stop)
    start_agent = staticmethod(agent_unit.start)
    agent = staticmethod(agent_unit.status)


def test_the_agents_unit_obeys_the_contract(unit: Callable[[str], None]) -> None:
    unit("exec sleep 600")
    run_the_agent(_Unit(), lambda holds: wait_until(holds, seconds=30, what="it is so"))


def test_an_agent_that_dies_for_ever_is_counted_and_another_is_started_in_its_place(
    unit: Callable[[str], None],
) -> None:
    unit("exit 1")
    agent_unit.start()
    wait_until(lambda: agent_unit.status().restarts > 10, seconds=30, what="it was started ten times")
    agent_unit.stop()
    agent_unit.stop()
    assert not agent_unit.status().is_running
    unit("exec sleep 600")
    agent_unit.start()
    wait_until(lambda: agent_unit.status().seconds > 1, seconds=30, what="it stays up")
    agent_unit.start()
    status = agent_unit.status()
    assert (status.is_running, status.restarts) == (True, 0)
    agent_unit.stop()
    assert agent_unit.status() == AgentStatus(is_running=False)


# The updater's unit ---------------------------------------------------------------------------------------------------


@pytest.mark.clause("UPG-9")
@pytest.mark.parametrize("has_staging", [True, False])
def test_the_updater_writes_where_releases_lie_and_not_where_its_own_program_is(
    debian: Machine, has_staging: bool
) -> None:
    """In its own unit, with a script in its place; it starts also where a folder was removed."""
    folder = debian.root / "etc/systemd/system"
    (folder / UPDATER_UNIT).write_text(units.texts(999)[UPDATER_UNIT])
    (folder / f"{UPDATER_UNIT}.d").mkdir(exist_ok=True)
    (folder / f"{UPDATER_UNIT}.d/once.conf").write_text("[Service]\nType=oneshot\nRestart=no\n")
    debian.run("mkdir", "--parents", "/opt/harmony-fleet/updaters", UPDATER_STATE)
    debian.run("rm", "--recursive", "--force", STAGING)
    if has_staging:
        debian.run("mkdir", STAGING)
    places = [STAGING, UPDATER_STATE, "/opt/harmony-fleet", "/opt/harmony-fleet/releases"]
    closed = ["/opt/harmony-fleet/updaters", "/etc", "/usr/local/bin", "/var/lib"]
    script = "".join(f"(: > {place}/written) 2>/dev/null\n" for place in places + closed)
    _write(debian, _UPDATER, f"{script}exec chown {USER} {UPDATER_STATE}/written")
    debian.run("systemctl", "daemon-reload")
    debian.run("systemctl", "start", UPDATER_UNIT)
    found = [place for place in places + closed if debian.inside(f"{place}/written").exists()]
    assert found == places[not has_staging :]
