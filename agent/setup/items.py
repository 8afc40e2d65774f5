"""What setup looks after, one thing each: what is there, and how to make it right. All of them idempotent."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent import durable
from agent.releases import folders
from agent.releases.description import DESCRIPTION, Release
from agent.releases.folders import ReleaseError
from agent.setup.layout import USER, Folder
from agent.setup.release import SetupError

SUB_IDS = 65_536
_FIRST_SUB_ID = 100_000

Run = Callable[[Sequence[str]], str]


def run(command: Sequence[str]) -> str:
    """Run a program of the system; its output.

    Raises:
        SetupError: it failed, or is not there.
    """
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise SetupError(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        raise SetupError(f"{' '.join(command)} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class Item(Protocol):
    """``name`` is what people read; :meth:`lacks` says in words what is not right, or nothing."""

    @property
    def name(self) -> str: ...

    def lacks(self) -> str: ...

    def make(self) -> None:
        """Make it right. Raises SetupError or OSError."""


@dataclass(frozen=True, slots=True)
class Account:
    """The agent's user and group."""

    home: str
    name: str = f"user {USER}"

    def lacks(self) -> str:
        try:
            found = pwd.getpwnam(USER)
        except KeyError:
            return "does not exist"
        return "" if found.pw_dir == self.home else f"has its home in {found.pw_dir}, not in {self.home}"

    def make(self) -> None:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            more = ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin"]
            run(["useradd", *more, "--home-dir", self.home, USER])
        else:
            run(["usermod", "--home", self.home, USER])


@dataclass(frozen=True, slots=True)
class SubIds:
    """Ids for the users inside containers. ``path`` is ``/etc/subuid`` or ``/etc/subgid``."""

    path: Path
    option: str

    @property
    def name(self) -> str:
        return f"{self.path.name} of {USER}"

    def lacks(self) -> str:
        own = sum(count for user, _, count in self._ranges() if user == USER)
        return "" if own >= SUB_IDS else f"has {own} ids, and containers need {SUB_IDS}"

    def make(self) -> None:
        start = max([_FIRST_SUB_ID, *(first + count for _, first, count in self._ranges())])
        run(["usermod", self.option, f"{start}-{start + SUB_IDS - 1}", USER])

    def _ranges(self) -> list[tuple[str, int, int]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        parts = [line.split(":") for line in lines if line.count(":") == 2]
        return [(user, int(first), int(count)) for user, first, count in parts if first.isdigit() and count.isdigit()]


@dataclass(frozen=True, slots=True)
class OwnFolder:
    path: Path
    folder: Folder

    @property
    def name(self) -> str:
        return f"folder {self.folder.path}"

    def lacks(self) -> str:
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return "does not exist"
        if not stat.S_ISDIR(found.st_mode):
            return "is no folder"
        mode = stat.S_IMODE(found.st_mode)
        if mode != self.folder.mode:
            return f"has the mode {mode:04o}, not {self.folder.mode:04o}"
        try:
            is_right = (found.st_uid, found.st_gid) == self._owners()
        except KeyError:
            return f"does not belong to {self.folder.owner}, who does not exist yet"
        return "" if is_right else f"does not belong to {self.folder.owner}:{self.folder.group or self.folder.owner}"

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        os.chown(self.path, *self._owners())
        self.path.chmod(self.folder.mode)

    def _owners(self) -> tuple[int, int]:
        group = self.folder.group or self.folder.owner
        return pwd.getpwnam(self.folder.owner).pw_uid, grp.getgrnam(group).gr_gid


@dataclass(frozen=True, slots=True)
class Installed:
    """A copy of the release that setup was started from; one that is there is verified, not trusted (UPG-7)."""

    source: Path
    target: Path
    release: Release

    @property
    def name(self) -> str:
        return f"release {self.release.version} in {self.target.parent}"

    def lacks(self) -> str:
        if not self.target.exists():
            return "is not there"
        try:
            found = folders.read(self.target)
        except ReleaseError as error:
            return f"is damaged: {error}"
        if damage := folders.damage(self.target, self.release):
            return f"is damaged or another build: {damage}"
        return "" if found == self.release else f"is another build: {DESCRIPTION} was changed"

    def make(self) -> None:
        folders.copy(self.source, self.target)


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link that is switched in one step; what else stands in its place is set aside (U5)."""

    path: Path
    target: str

    @property
    def name(self) -> str:
        return f"link {self.path}"

    def lacks(self) -> str:
        if not os.path.lexists(self.path):
            return "does not exist"
        if not self.path.is_symlink():
            return "is no link"
        found = os.readlink(self.path)
        return "" if found == self.target else f"leads to {found}, not to {self.target}"

    def make(self) -> None:
        if os.path.lexists(self.path) and not self.path.is_symlink():
            _set_aside(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f".{self.path.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self.target)
        fresh.replace(self.path)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file with this content. ``keeps``: one that is there belongs to the operator and is never written over.

    A link in its place is replaced, a folder is set aside.
    """

    path: Path
    text: str
    keeps: bool = False
    mode: int = 0o644

    @property
    def name(self) -> str:
        return f"file {self.path}"

    def lacks(self) -> str:
        if not os.path.lexists(self.path):
            return "does not exist"
        if self.keeps and self.path.is_file():
            return ""
        found = self.path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return "is no file"
        if stat.S_IMODE(found.st_mode) != self.mode:
            return f"has the mode {stat.S_IMODE(found.st_mode):04o}, not {self.mode:04o}"
        return "" if self.path.read_text(errors="replace") == self.text else "has another content"

    def make(self) -> None:
        if self.path.is_dir() and not self.path.is_symlink():
            _set_aside(self.path)
        durable.write(self.path, self.text.encode(), mode=self.mode)
        self.path.chmod(self.mode)


@dataclass(frozen=True, slots=True)
class Linger:
    """systemd keeps a manager for the user without a login: Podman's timers for health checks run in it."""

    marker: Path
    name: str = f"linger of {USER}"

    def lacks(self) -> str:
        return "" if self.marker.exists() else "is off"

    def make(self) -> None:
        run(["loginctl", "enable-linger", USER])


def _set_aside(path: Path) -> None:
    taken = sum(1 for _ in path.parent.glob(f"{path.name}.set-aside*"))
    path.rename(path.with_name(f"{path.name}.set-aside{taken or ''}"))
