"""Every command line that the updater may run, with the reason for each option. Nothing comes from outside (SYS-7)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from agent.updater.machine import Job, MachineError
from agent.wording import printable

_MAX_ERROR_CHARS = 600
#: How dpkg ends when it cannot read its database, as after a power loss while it was written.
_UNREADABLE = 2

#: Nobody answers questions; texts are in English because we read them; nothing of the updater's own environment.
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C",
    "DEBIAN_FRONTEND": "noninteractive",
    "DEBIAN_PRIORITY": "critical",
    # Changelogs are for people who sit in front of it.
    "APT_LISTCHANGES_FRONTEND": "none",
    "APT_LISTBUGS_FRONTEND": "none",
    # The device is started anew afterwards; until then agent, updater and containers go on (SYS-1).
    "NEEDRESTART_SUSPEND": "1",
    "NEEDRESTART_MODE": "l",
    # ucf asks by itself which configuration file to keep.
    "UCF_FORCE_CONFFOLD": "1",
}

#: The device's configuration files win over those of new packages; a default is only taken where there is no conflict.
_KEEP_FILES = ("--force-confdef", "--force-confold")
_APT = (
    "/usr/bin/apt-get",
    "--quiet",
    "--assume-yes",
    # Somebody may have taken the lock since it was looked at.
    *("-o", "DPkg::Lock::Timeout=600"),
    # A pseudo terminal of its own would hide dpkg's output until it ends, and with it how long it has been silent.
    *("-o", "Dpkg::Use-Pty=0"),
    *("-o", "Acquire::Retries=3"),
    *(word for option in _KEEP_FILES for word in ("-o", f"Dpkg::Options::={option}")),
)
JOBS: Mapping[Job, Sequence[str]] = {
    # A repository that can't be reached is an error, not a warning: otherwise old lists pass for new ones.
    Job.UPDATE: (*_APT, "--error-on=any", "update"),
    Job.UPGRADE: (*_APT, "full-upgrade"),
    Job.CONFIGURE: ("/usr/bin/dpkg", *_KEEP_FILES, "--configure", "--pending"),
    Job.FIX: (*_APT, "--fix-broken", "install"),
}

# The locks belong to whoever upgrades; a simulation only reads.
SIMULATE = ("/usr/bin/apt-get", "--simulate", "-o", "Debug::NoLocking=1", "full-upgrade")
AUDIT = ("/usr/bin/dpkg", "--audit")
INSTALLED = (
    "/usr/bin/dpkg-query",
    "--show",
    "--showformat=${db:Status-Status} ${Package} ${Architecture} ${Installed-Size}\n",
)
SHOW = ("/usr/bin/apt-cache", "show", "--no-all-versions")
IS_NEWER = ("/usr/bin/dpkg", "--compare-versions")
REBOOT = ("/usr/bin/systemctl", "reboot")


def output(command: Sequence[str], *, limit_seconds: float = 110, codes: Sequence[int] = (0,)) -> str:
    """What a command writes to its standard output.

    Raises:
        MachineError: it could not be run, took too long, or ended with a code that is none of ``codes``.
    """
    return _run(command, limit_seconds, codes).stdout.decode(errors="replace")


def audit() -> str:
    """What ``dpkg --audit`` complains about; a database that dpkg cannot read at all is not clean either.

    Raises:
        MachineError: dpkg could not be run, took too long, or ended with a code of another meaning.
    """
    done = _run(AUDIT, 110, (0, 1, _UNREADABLE))
    if done.returncode != _UNREADABLE:
        return done.stdout.decode(errors="replace")
    return done.stderr.decode(errors="replace").strip() or "dpkg cannot read its database"


def code(command: Sequence[str], *, codes: Sequence[int]) -> int:
    """With what a command ends; raises as :func:`output`."""
    return _run(command, 110, codes).returncode


def _run(command: Sequence[str], limit_seconds: float, codes: Sequence[int]) -> subprocess.CompletedProcess[bytes]:
    name = " ".join(command[:2])
    try:
        done = subprocess.run(  # noqa: S603  (fixed programs with lists of arguments)
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_seconds,
            check=False,
            env=dict(ENVIRONMENT),
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise MachineError(f"{name} took more than {limit_seconds:g} seconds") from None
    except OSError as error:
        raise MachineError(f"{name} could not be run: {error.strerror}") from None
    if done.returncode not in codes:
        # apt says on its standard output which package is to blame, and only then "E: Unmet dependencies".
        words = printable((done.stdout + done.stderr).decode(errors="replace").strip())[-_MAX_ERROR_CHARS:]
        raise MachineError(f"{name} ended with exit code {done.returncode}: {words}")
    return done
