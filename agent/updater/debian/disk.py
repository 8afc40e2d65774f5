"""Releases on a device's disk: which is active, which are whole, and how the link is switched (UPG-3, UPG-7)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from agent.releases import archive
from agent.releases.description import Release, place
from agent.releases.folders import ReleaseError, damage, discard, flush, read
from agent.releases.patience import Patience, TooSlow
from agent.setup.layout import USER, Layout
from agent.updater.binary.host import RELEASES, STAGING, VERIFIED
from agent.updater.debian.space import volume
from agent.updater.debian.staging import Staging
from agent.updater.machine import MachineError, Volume
from agent.wire.manifest import AgentUpgrade

_MEND = "run fleet-agent setup from an unpacked release, as root"
#: What an upgrade was putting together or replacing when it was cut off; setup's own have no digits of an archive.
_LEFTOVER = re.compile(r"\..+-[0-9a-f]{12}\.(unfinished|damaged)")


class Disk:
    """The parts of a host that need no systemd. ``root`` is ``/`` but in tests, ``state_dir`` the updater's.

    All methods raise MachineError when the disk does not do it.
    """

    def __init__(self, state_dir: Path, agent_user: str = USER, root: Path = Path("/")) -> None:
        layout = Layout(root)
        self._state_dir = state_dir
        self._downloads = layout.at(STAGING)
        self._link = layout.opt / "active"
        self.releases = layout.opt / "releases"
        self.staging = Staging(self._downloads, state_dir / "staging", agent_user)

    def can_replace(self) -> bool:
        """Whether an upgrade could write at all: an updater that an older setup installed can't."""
        return all(os.access(folder, os.W_OK) for folder in (self.releases, self._link.parent, self._downloads))

    def volumes(self) -> Mapping[str, Volume]:
        folders = {STAGING: self._downloads, VERIFIED: self._state_dir, RELEASES: self.releases}
        return {name: volume(folder) for name, folder in folders.items()}

    # Releases

    def active(self) -> str:
        """The place that the link leads to (U5)."""
        try:
            target = PurePosixPath(os.readlink(self._link))
        except FileNotFoundError:
            raise MachineError(f"{self._link} is missing; {_MEND}") from None
        except OSError:
            raise MachineError(f"{self._link} is no link; {_MEND}") from None
        name = PurePosixPath("/opt/harmony-fleet") / target
        if ".." in target.parts or name.parent != PurePosixPath("/opt/harmony-fleet/releases"):
            raise MachineError(f"{self._link} leads to {target}, which is no place of a release; {_MEND}")
        if not self._is_place(name.name):
            raise MachineError(f"{self._link} leads to {target}, where no release is; {_MEND}")
        return name.name

    def places(self) -> Sequence[str]:
        with _in_words():
            return [path.name for path in self._newest_first()]

    def release(self, place: str) -> Release:
        with _in_words():
            return read(self.releases / place)

    def damage(self, place: str) -> str:
        folder = self.releases / place
        if not self._is_place(place):
            return f"{folder} does not exist"
        try:
            return damage(folder, read(folder))
        except ReleaseError as error:
            return str(error)

    def switch(self, place: str) -> None:
        """Never written through, and never but to a folder that is there."""
        if not self._is_place(place):
            raise MachineError(f"{self.releases / place} does not exist")
        if os.path.lexists(self._link) and not self._link.is_symlink():
            raise MachineError(f"{self._link} is no link; {_MEND}")
        fresh = self._link.with_name(".active.new")
        with _in_words():
            discard(fresh)
            fresh.symlink_to(f"releases/{place}")
            fresh.replace(self._link)
            flush(self._link.parent)

    # An archive's way

    def prepare(self, attempt: str, target: AgentUpgrade) -> None:
        """What the download needs before it starts."""
        with _in_words():
            self.staging.prepare(attempt, target)

    def verify(self, attempt: str, target: AgentUpgrade, seconds: float) -> str:
        with _in_words():
            return self.staging.verify(attempt, target, Patience(seconds))

    def unpack(self, attempt: str, target: AgentUpgrade, seconds: float) -> str:
        name = place(target)
        patience = Patience(seconds)
        with _in_words():
            found = self._found(name, target, patience)
            if not found:
                return ""
            if name == self._active_or_nothing():
                return f"{self.releases / name} runs and is never written to, and it is not the target: {found}"
            return archive.install(self.staging.archive(attempt), target, self.releases / name, patience)

    def tidy(self, attempt: str, keep: Collection[str]) -> None:
        with _in_words():
            # Where nobody knows which one is active, none is superfluous.
            active = self._active_or_nothing()
            for path in self._superfluous({*keep, active}) if active else ():
                discard(path)
            self.staging.clear(attempt)

    def _superfluous(self, keep: Collection[str]) -> Iterator[Path]:
        yield from (path for path in self.releases.iterdir() if _LEFTOVER.fullmatch(path.name))
        yield from (path for path in self._newest_first() if path.name not in keep)

    def _newest_first(self) -> list[Path]:
        """By when they got their names, which unlike the time that a release was built is never another's."""
        found = [path for path in self.releases.iterdir() if not path.name.startswith(".")]
        return sorted(found, key=lambda path: path.lstat().st_ctime_ns, reverse=True)

    def _found(self, name: str, target: AgentUpgrade, patience: Patience) -> str:
        """What is there already is verified, not trusted; in what it is not the target, or empty (UPG-7)."""
        folder = self.releases / name
        if not self._is_place(name):
            return "it is not there"
        try:
            release = read(folder)
        except ReleaseError as error:
            return str(error)
        return archive.matches(release, target) or damage(folder, release, patience)

    def _active_or_nothing(self) -> str:
        try:
            return self.active()
        except MachineError:
            return ""

    def _is_place(self, name: str) -> bool:
        folder = self.releases / name
        return not name.startswith(".") and folder.is_dir() and not folder.is_symlink()


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineError(f"{error.filename or 'the disk'}: {error.strerror or error}") from None
    except RecursionError:
        raise MachineError("a folder is nested deeper than it can be removed; remove it by hand") from None
    except (ReleaseError, TooSlow) as error:
        raise MachineError(str(error)) from None
