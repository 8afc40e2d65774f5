"""Who waits for what: plain memory without I/O."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping

from devices.polling import Head


class Outcome(enum.Enum):
    """How a wait ends."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown credential"
    BUSY = "not now"
    GONE = "gone"


class Waiter:
    """One held request. ``known`` is its ``If-None-Match``: the version that the device has."""

    __slots__ = ("_device_id", "etag", "known", "outcome", "token_hash")

    def __init__(self, token_hash: str, known: str) -> None:
        self.token_hash = token_hash
        self.known = known
        self.etag = ""
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._device_id = 0

    @property
    def device_id(self) -> int:
        """0 until its credential was found."""
        return self._device_id

    def sit(self, head: Head) -> None:
        self._device_id, self.etag = head.device_id, head.etag

    def end(self, outcome: Outcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class Room:
    """The devices that wait here, each once."""

    def __init__(self) -> None:
        self._seats: dict[int, Waiter] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def seat(self, waiter: Waiter, head: Head) -> None:
        """Let a device wait, unless there is news for it already.

        It takes the place of an older request of the same device, whose other end is most likely gone.
        """
        waiter.sit(head)
        if head.etag not in waiter.known:  # a proxy may have put W/ before it
            waiter.end(Outcome.CHANGED)
        elif not waiter.outcome.done():
            if older := self._seats.get(head.device_id):
                older.end(Outcome.UNCHANGED)
            self._seats[head.device_id] = waiter

    def leave(self, waiter: Waiter) -> None:
        if self._seats.get(waiter.device_id) is waiter:
            del self._seats[waiter.device_id]

    def tell(self, etags: Mapping[int, str]) -> int:
        """Tell those for whom something changed, and send away those who are no devices any more; how many."""
        leaving = [waiter for device_id, waiter in self._seats.items() if etags.get(device_id) != waiter.etag]
        for waiter in leaving:
            waiter.end(Outcome.CHANGED if waiter.device_id in etags else Outcome.UNKNOWN)
            self.leave(waiter)
        return len(leaving)

    def close(self) -> None:
        """Let everybody go; they come again, to this process's successor."""
        for waiter in self._seats.values():
            waiter.end(Outcome.UNCHANGED)
        self._seats.clear()
