"""An ordinary user of this machine for a while: its own ids, home and process tree; gone afterwards. Needs root."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

#: The kernel's number of the device that slirp4netns opens; a desktop's udev opens it to everybody, a server may not.
_TUN = os.makedev(10, 200)
#: In a mount namespace of their own, so that the machine's device stays as it is.
_WITH_TUN = 'mount --make-rshared / && mount --bind "$1" /dev/net/tun && shift && exec "$@"'


@dataclass(frozen=True)
class OrdinaryUser:
    """``run`` starts programs as this user; all they may write to is below ``home``."""

    name: str
    home: Path

    def run(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run it to its end; its output is one text."""
        become = ["setpriv", "--reuid", self.name, "--regid", self.name, "--init-groups"]
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", _WITH_TUN, "sh", str(self.home / "tun"), *become, *command],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), **env},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@contextlib.contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """A user with subordinate ids, as ``useradd`` gives them to people."""
    name = f"fleet-{secrets.token_hex(4)}"
    home = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))  # short: sockets lie below it
    try:
        _change_users("useradd", "--home-dir", str(home), "--no-create-home", name)
        os.mknod(home / "tun", 0o666 | stat.S_IFCHR, _TUN)
        (home / "tun").chmod(0o666)
        shutil.chown(home, name, name)
        yield OrdinaryUser(name, home)
    finally:
        _end_processes(name)
        with contextlib.suppress(subprocess.CalledProcessError):  # there is no such user when it could not be made
            _change_users("userdel", "--force", name)
        shutil.rmtree(home, ignore_errors=True)


def _change_users(*command: str) -> None:
    """One at a time: these programs give up when another one holds the lock of the user list."""
    with Path(tempfile.gettempdir(), "fleet-test-users.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(command, check=True, capture_output=True)


def _end_processes(name: str) -> None:
    """Of this user only, which nobody else ever was."""
    for process in psutil.process_iter(["username"]):
        if process.info["username"] == name:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
