"""A file that is being fetched: how much of it is there, and of which version of what lies at its address."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from agent.releases.fetch.errors import FetchError

_CHUNK = 1_048_576


class Partial:
    """``validator`` is what a server calls the version that the bytes are from (an ETag or a date), or empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._note = path.with_name(f"{path.name}.validator")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def validator(self) -> str:
        try:
            return self._note.read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def start_over(self, validator: str) -> None:
        """Nothing of the file is there any more; what comes is of that version."""
        self.path.write_bytes(b"")
        self._note.write_text(validator)

    def append(self, pieces: Iterable[bytes], most: int) -> None:
        """Write behind what is there, never beyond ``most`` bytes in all.

        Raises:
            FetchError: more came.
        """
        size = self.size
        with self.path.open("ab") as file:
            for piece in pieces:
                size += len(piece)
                if size > most:
                    raise FetchError(
                        f"what is sent does not end at its maxSize of {most:,} bytes; nothing more is read"
                    )
                file.write(piece)
                file.flush()  # what is there counts, should this be killed

    def digest(self) -> str:
        """SHA-256, in lower case."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
