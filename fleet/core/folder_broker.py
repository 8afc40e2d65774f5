"""The embedded default's broker: a folder, without anything to install.

kombu's own folder transport creates a message's file under its final name and fills it afterwards. A worker that is
quick finds it empty, fails to read it and ends for good. Here every file appears whole, by one rename.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

#: The scheme of the broker's URL; ``fleet.celery`` tells kombu.
SCHEME = "folder"
TRANSPORT = f"{__name__}:Transport"


class Channel(filesystem.Channel):
    """One folder of messages, shared by all processes of an installation."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:
        name = f"{time.monotonic_ns() // 1_000_000:020}_{uuid.uuid4()}.{queue}.msg"
        _write(Path(self.data_folder_out) / name, dumps(payload))

    def _get(self, queue: str) -> Any:
        """The oldest message, which nobody else gets.

        Raises:
            Empty: when there is none. A torn file (a full disk) is dropped: a bell may get lost.
        """
        for name in sorted(os.listdir(self.data_folder_in)):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            ours = Path(self.processed_folder) / name
            try:
                (Path(self.data_folder_in) / name).rename(ours)
            except FileNotFoundError:
                continue  # another worker was faster
            try:
                return loads(ours.read_text())
            except ValueError:
                continue
            finally:
                ours.unlink(missing_ok=True)
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        binding = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with _alone(self.control_folder):
            bound = self.get_table(exchange)
            if binding not in bound:
                _write(self._exchange_file(exchange), dumps([binding, *bound]))


class Transport(filesystem.Transport):
    """What the broker's URL names."""

    Channel = Channel


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{uuid.uuid4()}")
    draft.write_text(text)
    draft.rename(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time; the kernel lets go when it dies."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
