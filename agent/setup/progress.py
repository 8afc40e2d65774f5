"""One setup at a time, and one that was cut off before it started the units anew is not forgotten."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from agent.setup.release import SetupError

#: In a folder that a boot empties, because a boot starts everything anew as well.
FILE = "/run/harmony-fleet-setup"


class Progress:
    """The file is empty unless something was changed that the running units may not know of yet."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @property
    def is_unfinished(self) -> bool:
        return self._file.seek(0, 2) > 0

    def begin(self) -> None:
        """Something is about to be changed."""
        if not self.is_unfinished:
            self._file.write(b"the units were not started anew yet\n")

    def end(self) -> None:
        """The units run what is there."""
        self._file.truncate(0)


def is_unfinished(path: Path) -> bool:
    """As :attr:`Progress.is_unfinished`, for those who only look."""
    return path.exists() and path.stat().st_size > 0


@contextlib.contextmanager
def alone(path: Path) -> Iterator[Progress]:
    """Keep every other setup out.

    Raises:
        SetupError: one runs.
    """
    with path.open("ab", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetupError("another setup runs on this machine; run this one again when that has ended") from None
        yield Progress(file)
