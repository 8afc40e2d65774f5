"""Jobs in transient units, with a real systemd: how they end, what they say, and who finds them again (SYS-5)."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from agent.updater.debian import transient, units
from agent.updater.debian.units import Units
from agent.updater.machine import MAX_TAIL_CHARS, Job, JobState, JobStatus, MachineError
from harness.vm.nspawn import Machine
from harness.waiting import wait_until
from tests.support.contracts import obey_the_contract

Run = Callable[..., str]
#: systemd makes one dollar sign of two: the number of a script's own process.
ITSELF = "$$$$"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def debian(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine([bare], tmp_path_factory.mktemp("jobs")) as machine:
        machine.start()
        yield machine


@pytest.fixture
def outputs(debian: Machine) -> Path:
    """A folder of the same name outside and inside."""
    folder = debian.root / "var/output"
    inside = debian.inside(str(folder))
    if not inside.is_symlink():
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.symlink_to("/var/output")
    return folder


@pytest.fixture
def jobs(debian: Machine, outputs: Path, monkeypatch: pytest.MonkeyPatch) -> Units:
    """The updater's units, whose commands for systemd are carried into the machine."""

    def output(command: Sequence[str], *, codes: Sequence[int] = (0,)) -> str:
        done = debian.run(*command, check=False)
        if done.returncode not in codes:
            raise MachineError(f"{' '.join(command[:2])} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    monkeypatch.setattr(transient, "output", output)
    return Units(outputs)


@pytest.fixture
def run(jobs: Units, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Start a script as a job of a new attempt, by default the upgrade; the attempt."""

    def start(script: str, job: Job = Job.UPGRADE) -> str:
        monkeypatch.setattr(units, "JOBS", dict.fromkeys(Job, ("/bin/sh", "-c", script)))
        attempt = f"00000000-0000-0000-0000-{next(_numbers):012}"
        jobs.start(attempt, job)
        return attempt

    return start


def _ended(jobs: Units, attempt: str) -> JobStatus:
    def is_over() -> bool:
        return jobs.observe(attempt, Job.UPGRADE).state is JobState.ENDED

    wait_until(is_over, seconds=30, what="the job has ended")
    return jobs.observe(attempt, Job.UPGRADE)


def test_they_obey_the_contract(jobs: Units, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "JOBS", dict.fromkeys(Job, ("/bin/sleep", "2")))
    obey_the_contract(jobs, lambda holds: wait_until(holds, seconds=30, what="it is so"))


@pytest.mark.clause("SYS-5")
def test_a_job_ends_with_its_code_and_all_that_it_said_in_order(jobs: Units, run: Run) -> None:
    attempt = run("echo one; echo two >&2; echo three; echo four >&2; exit 100")
    status = _ended(jobs, attempt)
    assert (status.exit_code, status.tail) == (100, "one\ntwo\nthree\nfour")


def test_a_job_that_succeeds_stays_known(jobs: Units, run: Run) -> None:
    attempt = run("echo done")
    assert _ended(jobs, attempt) == JobStatus(JobState.ENDED, exit_code=0, tail="done")
    assert jobs.observe(attempt, Job.UPDATE).state is JobState.ABSENT


def test_a_job_that_a_signal_ended_has_a_negative_code(jobs: Units, run: Run) -> None:
    assert _ended(jobs, run(f"kill -KILL {ITSELF}")).exit_code == -signal.SIGKILL


@pytest.mark.clause("SYS-5")
def test_what_a_killed_apt_leaves_running_is_still_the_job(jobs: Units, run: Run, debian: Machine) -> None:
    attempt = run(
        f"(while [ ! -e /run/go-on ]; do sleep 0.1; done; echo dpkg is through) & sleep 1; kill -KILL {ITSELF}"
    )
    said = ["systemctl", "show", "--property=ActiveState", "--value", f"harmony-fleet-apt-{attempt}-upgrade.service"]
    wait_until(lambda: debian.run(*said).stdout.strip() == "deactivating", seconds=20, what="apt is killed")
    assert jobs.observe(attempt, Job.UPGRADE).state is JobState.RUNNING
    debian.inside("/run/go-on").touch()
    status = _ended(jobs, attempt)
    assert (status.exit_code, status.tail) == (-signal.SIGKILL, "dpkg is through")


@pytest.mark.clause("SYS-5")
def test_an_updater_that_was_restarted_finds_the_job_and_its_silence(jobs: Units, run: Run, outputs: Path) -> None:
    attempt = run("echo begins; sleep 600", Job.UPDATE)
    log = outputs / f"harmony-fleet-apt-{attempt}-update.log"
    wait_until(lambda: log.exists() and log.read_text() == "begins\n", seconds=20, what="the job speaks")
    wait_until(lambda: jobs.observe(attempt, Job.UPDATE).silent_seconds > 1, seconds=20, what="it is silent")
    os.utime(log, (0, 0))
    again = Units(outputs)
    assert 1 < again.observe(attempt, Job.UPDATE).silent_seconds < 60, "no longer than the job is old"
    again.start(attempt, Job.UPDATE)
    assert log.read_text() == "begins\n", "it was not started anew"
    again.stop(attempt, Job.UPDATE)
    assert again.observe(attempt, Job.UPDATE).state is JobState.ABSENT


@pytest.mark.clause("SYS-5")
@pytest.mark.parametrize("verb", ["daemon-reexec", "daemon-reload"])
def test_an_upgrade_of_systemd_itself_loses_no_job(jobs: Units, run: Run, debian: Machine, verb: str) -> None:
    """Its maintainer script lets the new systemd take over in the middle of the upgrade."""
    attempt = run(f"systemctl {verb}; echo goes on; exit 7")
    assert _ended(jobs, attempt) == JobStatus(JobState.ENDED, exit_code=7, tail="goes on")
    debian.run("systemctl", verb)
    assert jobs.observe(attempt, Job.UPGRADE).exit_code == 7


def test_silence_ends_with_each_word(jobs: Units, run: Run) -> None:
    attempt = run("sleep 2; echo word; sleep 600", Job.UPDATE)
    wait_until(lambda: jobs.observe(attempt, Job.UPDATE).silent_seconds > 1, seconds=20, what="it is silent")
    wait_until(lambda: jobs.observe(attempt, Job.UPDATE).silent_seconds < 1, seconds=20, what="it has spoken")
    jobs.stop(attempt, Job.UPDATE)


def test_a_job_that_has_ended_is_started_anew_with_an_output_of_its_own(jobs: Units, run: Run) -> None:
    attempt = run("echo once; exit 3")
    _ended(jobs, attempt)
    jobs.start(attempt, Job.UPGRADE)
    assert _ended(jobs, attempt) == JobStatus(JobState.ENDED, exit_code=3, tail="once")


def test_a_job_can_be_stopped_and_is_then_forgotten(jobs: Units, run: Run) -> None:
    attempt = run("exit 0")
    jobs.start(attempt, Job.UPDATE)
    jobs.stop(attempt, Job.UPDATE)
    assert jobs.observe(attempt, Job.UPDATE).state is JobState.ABSENT
    jobs.stop(attempt, Job.UPDATE)


def test_a_program_that_is_not_there_is_an_error(jobs: Units, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "JOBS", {Job.UPDATE: ("/nowhere/apt-get",)})
    with pytest.raises(MachineError, match="systemd-run"):
        jobs.start("00000000-0000-0000-0000-00000000dead", Job.UPDATE)


def test_nobody_is_asked_and_texts_are_in_english(jobs: Units, run: Run) -> None:
    tail = _ended(jobs, run("env; tty")).tail
    assert "DEBIAN_FRONTEND=noninteractive" in tail
    assert "LC_ALL=C" in tail
    assert "HOME=/root" in tail
    assert "not a tty" in tail


def test_what_it_says_is_cut_to_its_end_and_does_nothing_to_a_terminal(jobs: Units, run: Run) -> None:
    # A service ignores SIGPIPE, so that yes complains of it at any moment, also after the end.
    attempt = run("yes filling 2>/dev/null | head -c 90000; echo the end")
    tail = _ended(jobs, attempt).tail
    assert len(tail) <= MAX_TAIL_CHARS
    assert tail.endswith("filling\nthe end")
    attempt = run(r"printf '\033[31mred\033[0m\tand 50%%\rand 100%%\n\007bell'")
    assert _ended(jobs, attempt).tail == "red and 50%\nand 100%\n\N{REPLACEMENT CHARACTER}bell"


def test_the_output_is_for_root_alone(jobs: Units, run: Run, outputs: Path) -> None:
    _ended(jobs, run("echo secret"))
    assert outputs.stat().st_mode & 0o777 == 0o700


def test_what_a_job_that_is_over_has_left_running_holds_up_no_reboot(jobs: Units, run: Run, debian: Machine) -> None:
    attempt = run("setsid sleep 4711 & exit 0")
    assert _ended(jobs, attempt).exit_code == 0
    assert debian.run("pgrep", "--full", "sleep 4711", check=False).returncode == 0
    jobs.end_leftovers()
    wait_until(
        lambda: debian.run("pgrep", "--full", "sleep 4711", check=False).returncode, seconds=20, what="it is ended"
    )
    assert jobs.observe(attempt, Job.UPGRADE).state is JobState.ENDED, "how the job ended stays readable"


@pytest.mark.clause("SYS-5")
def test_an_ordinary_reboot_waits_for_the_job_and_it_is_absent_afterwards(
    jobs: Units, run: Run, debian: Machine
) -> None:
    attempt = run("while [ ! -e /var/go-on ]; do sleep 0.1; done; echo through > /var/through; sync")
    debian.run("systemctl", "--no-block", "reboot")
    wait_until(lambda: "stopping" in _state(debian), seconds=30, what="it shuts down")
    (debian.root / "var/go-on").touch()
    debian.wait_until_up(boots=2)
    assert (debian.root / "var/through").read_text() == "through\n"
    assert jobs.observe(attempt, Job.UPGRADE).state is JobState.ABSENT


def _state(machine: Machine) -> str:
    return machine.run("systemctl", "is-system-running", check=False).stdout
