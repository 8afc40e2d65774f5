"""Bring a device to what the plan says, or say what differs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agent.setup.items import Item, TextFile, run
from agent.setup.layout import AGENT_STATE, AGENT_UNIT, UNITS, USER, Layout
from agent.setup.release import SetupError

PROGRAMS = {
    "podman": "podman",
    "newuidmap": "uidmap",
    "slirp4netns": "slirp4netns",
    "useradd": "passwd",
    "loginctl": "systemd",
}

Say = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """Names of what was made or changed, or with ``--check`` would be."""

    changed: list[str] = field(default_factory=list)


def require_host() -> None:
    """What setup can't make itself.

    Raises:
        SetupError: not root, no systemd, or a program is missing; says the command that installs it.
    """
    if os.geteuid() != 0:
        raise SetupError("setup makes users, folders and units, so it must run as root")
    if not Path("/run/systemd/system").is_dir():
        raise SetupError("this machine was not started by systemd, which runs agent, updater and Podman")
    missing = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    if missing:
        raise SetupError(f"missing on this machine; install with: apt-get install {' '.join(missing)}")


def look(items: Iterable[Item], say: Say) -> Outcome:
    """Change nothing; say what would be made."""
    outcome = Outcome()
    for item in items:
        lack = item.lacks()
        say(f"{'differs' if lack else 'ok':8} {item.name}{f': {lack}' if lack else ''}")
        if lack:
            outcome.changed.append(item.name)
    return outcome


def bring_about(items: Iterable[Item], say: Say, before: Callable[[], None] = lambda: None) -> Outcome:
    """Make what is missing, one after the other; ``before`` is called each time.

    Raises:
        SetupError: one can't be made; what was made before it stays, and the next run goes on there.
    """
    outcome = Outcome()
    for item in items:
        lack = item.lacks()
        if not lack:
            say(f"{'ok':8} {item.name}")
            continue
        _make(item, before)
        if still := item.lacks():
            raise SetupError(f"{item.name}: {still}, although setup has just made it")
        say(f"{'made':8} {item.name}: {lack}")
        outcome.changed.append(item.name)
    return outcome


def _make(item: Item, before: Callable[[], None]) -> None:
    if isinstance(item, TextFile) and item.keeps and not item.text:
        raise SetupError(f"{item.name}: {item.lacks()}; give --url, and --device-id if it is not the host's name")
    try:
        before()
        item.make()
    except OSError as error:
        raise SetupError(f"{item.name}: {error.filename or ''} {error.strerror}") from None


def start_units(changed: bool, say: Say) -> bool:
    """Enable and start the units; restart them when something changed. Whether anything was done."""
    if changed:
        run(["systemctl", "daemon-reload"])
    done = False
    for unit in UNITS:
        if not _systemctl("is-enabled", unit):
            run(["systemctl", "--quiet", "enable", unit])
            done = True
        if changed or not _systemctl("is-active", unit):
            run(["systemctl", "restart", unit])
            say(f"{'started':8} {unit}")
            done = True
        else:
            say(f"{'ok':8} {unit} is active")
    return done


def units_that_can_run(layout: Layout, say: Say) -> tuple[str, ...]:
    """All but the agent's while the device is not enrolled: that one ends at once, and nothing is wrong with it."""
    if _is_enrolled(layout):
        return UNITS
    say(f"{'note':8} {AGENT_UNIT} cannot run yet: this device is not enrolled; do that with setup --token-file FILE")
    return tuple(unit for unit in UNITS if unit != AGENT_UNIT)


def look_at_units(running: Collection[str], say: Say) -> list[str]:
    """Units that are not enabled, or that should be ``running`` and are not."""
    lacking = [unit for unit in UNITS if not _is_as_it_should_be(unit, unit in running)]
    for unit in UNITS:
        say(
            f"differs  {unit} is not enabled, or does not run; see: systemctl status {unit}"
            if unit in lacking
            else f"{'ok':8} {unit} is {'active' if unit in running else 'enabled'}"
        )
    return lacking


def _is_as_it_should_be(unit: str, should_run: bool) -> bool:
    return _systemctl("is-enabled", unit) and (not should_run or _systemctl("is-active", unit))


def _is_enrolled(layout: Layout) -> bool:
    return (layout.at(AGENT_STATE) / "identity.json").exists()


def enrol(layout: Layout, token: str, say: Say) -> None:
    """Exchange the token as the agent's user, to whom the credential then belongs; nothing when it is enrolled.

    Raises:
        SetupError: the control plane refused, in its own words.
    """
    if _is_enrolled(layout):
        say(f"{'ok':8} this device is enrolled")
        return
    command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--"]
    command += [str(layout.opt / "active/fleet-agent"), "enroll", "--token-file", "-"]
    done = subprocess.run(command, input=token, capture_output=True, text=True, check=False, cwd="/")  # noqa: S603
    if done.returncode:
        raise SetupError(done.stderr.strip().removeprefix("fleet-agent: "))
    say(f"{'made':8} {done.stdout.strip()}")


def _systemctl(question: str, unit: str) -> bool:
    command = ["systemctl", "--quiet", question, unit]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0  # noqa: S603
