"""Where an archive lies on its way: the agent's user downloads it, root takes a copy, and unpacks only that (UPG-3)."""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from agent import durable
from agent.releases.folders import digest_of, discard, flush
from agent.releases.job import FetchJob
from agent.releases.patience import Patience
from agent.updater.machine import MachineError
from agent.wire.manifest import AgentUpgrade

_ARCHIVE = "archive"
_CHUNK = 1_048_576
_OTHER_THINGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Staging:
    """``downloads`` is root's, with a folder of the agent's user for each attempt; ``verified`` is root's alone.

    Methods raise OSError when the disk does not do it.
    """

    def __init__(self, downloads: Path, verified: Path, agent_user: str) -> None:
        self._downloads = downloads
        self._verified = verified
        self._agent_user = agent_user

    def folder(self, attempt: str) -> Path:
        """The only place that the attempt's download may write to."""
        return self._downloads / attempt

    def job(self, attempt: str) -> Path:
        """What :meth:`prepare` writes for the download."""
        return self._downloads / f"{attempt}.json"

    def archive(self, attempt: str) -> Path:
        """What :meth:`verify` leaves."""
        return self._verified / f"{attempt}.tar.gz"

    def prepare(self, attempt: str, target: AgentUpgrade) -> None:
        """Give the download its folder and its job; what it has fetched before stays.

        Raises:
            MachineError: this device has no agent's user.
        """
        user = self._user()
        folder = self.folder(attempt)
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)
        job = FetchJob(target, str(folder / _ARCHIVE))
        # Not for everybody: an address may hold a signature that lets its reader fetch.
        durable.write(self.job(attempt), msgspec.json.encode(job), mode=0o640)
        os.chown(self.job(attempt), 0 if os.geteuid() == 0 else -1, user.pw_gid)
        self.job(attempt).chmod(0o640)

    def verify(self, attempt: str, target: AgentUpgrade, patience: Patience) -> str:
        """Take a copy that only root can write, and hash what was copied; why it is not the target, or empty.

        The download is gone afterwards, so that a repeat of one that was wrong begins from nothing.

        Raises:
            TooSlow: it took longer than it may.
        """
        self._verified.mkdir(mode=0o700, exist_ok=True)
        kept = self.archive(attempt)
        is_known = kept.exists() and digest_of(kept, patience) == target.sha256
        problem = "" if is_known else self._take(attempt, target, patience)
        discard(self.folder(attempt))
        return problem

    def clear(self, attempt: str) -> None:
        """Remove all that lies here: the attempt's, then what others left that were cut off before this. No two are at
        work at once.
        """
        own = (self.folder(attempt), self.job(attempt), self.archive(attempt), self._copy(attempt))
        left = [path for folder in (self._downloads, self._verified) if folder.is_dir() for path in folder.iterdir()]
        for path in (*own, *left):
            discard(path)

    def _take(self, attempt: str, target: AgentUpgrade, patience: Patience) -> str:
        copy = self._copy(attempt)
        discard(copy)
        try:
            with self._download(attempt) as source, copy.open("xb") as sink:
                problem = _copied(source, sink, target, patience)
            if not problem:
                copy.rename(self.archive(attempt))
                flush(self._verified)
        finally:
            discard(copy)
        return problem

    def _copy(self, attempt: str) -> Path:
        return self._verified / f".{attempt}.unfinished"

    @contextmanager
    def _download(self, attempt: str) -> Iterator[BinaryIO]:
        """Opened so that the agent's user can't have root read another file, or wait for a pipe."""
        folder = os.open(self.folder(attempt), os.O_DIRECTORY | _OTHER_THINGS)
        try:
            descriptor = os.open(_ARCHIVE, os.O_RDONLY | _OTHER_THINGS, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != self._user().pw_uid:
                raise MachineError("what was downloaded is no file of the agent's user's own; try again")
            yield file

    def _user(self) -> pwd.struct_passwd:
        try:
            return pwd.getpwnam(self._agent_user)
        except KeyError:
            raise MachineError(f'this device has no user "{self._agent_user}"; run: fleet-agent setup') from None


def _copied(source: BinaryIO, sink: BinaryIO, target: AgentUpgrade, patience: Patience) -> str:
    """Copy until the end or until it is too much; in what the copy is not the target, or empty."""
    found, size = hashlib.sha256(), 0
    while data := source.read(_CHUNK):
        patience.check()
        size += len(data)
        if size > target.maxSize:
            return f"the archive has at least {size:,} bytes, and the target allows {target.maxSize:,} (maxSize)"
        found.update(data)
        sink.write(data)
    if found.hexdigest() != target.sha256:
        return f"the archive's sha256 is {found.hexdigest()} ({size:,} bytes), and the target's is {target.sha256}"
    sink.flush()
    os.fsync(sink.fileno())
    return ""
