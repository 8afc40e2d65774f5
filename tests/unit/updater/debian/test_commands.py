"""Command lines are fixed, and docs/reference/system-upgrade.md shows them as they are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from agent.updater.debian import commands, locks
from agent.updater.machine import Job, MachineError

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "system-upgrade.md").read_text()


@pytest.mark.clause("SYS-1")
@pytest.mark.parametrize("job", Job)
def test_the_page_shows_each_job_as_it_is_run(job: Job) -> None:
    assert f"| `harmony-fleet-apt-<attempt>-{job}.service` | `{shlex.join(commands.JOBS[job])}` |" in PAGE


@pytest.mark.parametrize("name", ["AUDIT", "SIMULATE", "SHOW", "INSTALLED", "IS_NEWER", "REBOOT"])
def test_the_page_shows_each_question_as_it_is_asked(name: str) -> None:
    shown = shlex.join(getattr(commands, name)).replace("\n", "\\n")
    assert f"`{shown}" in PAGE


def test_the_page_lists_the_whole_environment_and_every_lock() -> None:
    section = PAGE.partition("### Environment")[2].partition("### Unit")[0]
    assert re.findall(r"^\| `(\w+)=(.*?)` \|", section, flags=re.M) == list(commands.ENVIRONMENT.items())
    assert all(f"`{path}`" in PAGE for path in locks.LOCKS)


@pytest.mark.clause("SYS-1")
def test_no_restart_of_services_no_questions_and_the_devices_own_files() -> None:
    assert commands.ENVIRONMENT["NEEDRESTART_SUSPEND"] == "1"
    assert commands.ENVIRONMENT["DEBIAN_FRONTEND"] == "noninteractive"
    for job in (Job.UPGRADE, Job.CONFIGURE, Job.FIX):
        line = shlex.join(commands.JOBS[job])
        assert "--force-confdef" in line
        assert "--force-confold" in line


def test_systemd_finds_nothing_to_replace_in_them() -> None:
    words = [word for command in commands.JOBS.values() for word in command] + list(commands.ENVIRONMENT.values())
    assert not [word for word in words if "$" in word or "%" in word]


def test_nothing_of_the_updaters_own_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APT_CONFIG", "/tmp/evil.conf")  # noqa: S108
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/harmony-fleet/updater/_internal")
    lines = commands.output(["/usr/bin/env"]).splitlines()
    assert dict(line.split("=", 1) for line in lines) == dict(commands.ENVIRONMENT)


def test_what_fails_is_named_with_its_own_words() -> None:
    with pytest.raises(MachineError, match=r"^/bin/sh -c ended with exit code 3: out\nerr$"):
        commands.output(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"])
    assert commands.output(["/bin/sh", "-c", "echo fine; exit 3"], codes=(3,)) == "fine\n"
