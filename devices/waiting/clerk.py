"""The one who asks the database, for all who wait: one question at a time, on one connection.

That order is what makes it right: a device is let in with the version that was read before the next look, so nothing
falls between the two.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import Error, connections

from devices.waiting import reads
from devices.waiting.room import Outcome, Room, Waiter

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

#: How long the first of many who come at once waits for the others.
GATHER_SECONDS = 0.005
#: Credentials that are looked up by one statement.
BATCH = 500
#: Between two looks, however often the bell rings.
RING_GAP_SECONDS = 0.1
#: Looks are that much rarer while the bell can be heard.
HEARING_FACTOR = 10
#: A database that is silent for so long counts as away.
PATIENCE_SECONDS = 10.0
RECOVERY_SECONDS = 1.0


class DatabaseAway(Exception):
    """It did not answer, or with an error."""


class Clerk:
    """Lets waiters into the room, and looks every ``look_seconds`` whether one of them is to be told."""

    def __init__(self, room: Room, *, look_seconds: float) -> None:
        self._room = room
        self._look_seconds = look_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._arrived: list[Waiter] = []
        self._work = asyncio.Event()
        self._rung = False
        self._is_hearing = False
        self._last_look = -math.inf
        self._mark: reads.Mark | None = None
        self._is_away = False

    @property
    def fault(self) -> str:
        """Why nobody can be let in or told; empty when all is well."""
        return "the database does not answer; the log says more" if self._is_away else ""

    def let_in(self, waiter: Waiter) -> None:
        """Its outcome says when it was not."""
        self._arrived.append(waiter)
        self._work.set()

    def ring(self) -> None:
        """Somebody says that something changed: look soon."""
        self._rung = True
        self._work.set()

    def set_hearing(self, is_hearing: bool) -> None:
        """Whether the bell can be heard, so that looks without one may be rare."""
        self._is_hearing = is_hearing
        self._work.set()

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                try:
                    await self._wait_for_work()
                    await self._work_once()
                except DatabaseAway:
                    self._rung = True  # whatever it was that we wanted to see, we have not seen it
                    await asyncio.sleep(RECOVERY_SECONDS)
                except Exception:
                    log.exception("unexpected error; going on in %g s", RECOVERY_SECONDS)
                    await asyncio.sleep(RECOVERY_SECONDS)
        finally:
            self._thread.submit(connections.close_all)
            self._thread.shutdown(wait=False)

    def close(self) -> None:
        """Let nobody in any more."""
        while self._arrived:
            self._arrived.pop().end(Outcome.BUSY)

    async def _wait_for_work(self) -> None:
        self._work.clear()
        pause = self._next_look() - asyncio.get_running_loop().time()
        if self._arrived or pause <= 0:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._work.wait(), pause if pause < math.inf else None)

    async def _work_once(self) -> None:
        if self._arrived:
            await self._look_up()
        if self._next_look() <= asyncio.get_running_loop().time():
            await self._look()

    def _next_look(self) -> float:
        if not self._room:
            return math.inf
        if self._rung:
            return self._last_look + RING_GAP_SECONDS
        return self._last_look + self._look_seconds * (HEARING_FACTOR if self._is_hearing else 1)

    async def _look_up(self) -> None:
        """One statement for all who came at about the same time."""
        await asyncio.sleep(GATHER_SECONDS)
        batch, self._arrived = self._arrived[:BATCH], self._arrived[BATCH:]
        try:
            heads = await self._ask(reads.heads_of, {waiter.token_hash for waiter in batch})
        except DatabaseAway:
            for waiter in batch:
                waiter.end(Outcome.BUSY)
            raise
        for waiter in batch:
            if head := heads.get(waiter.token_hash):
                self._room.seat(waiter, head)
            else:
                waiter.end(Outcome.UNKNOWN)

    async def _look(self) -> None:
        self._rung, self._last_look = False, asyncio.get_running_loop().time()
        mark = await self._ask(reads.mark)
        if mark != self._mark:
            told = self._room.tell(await self._ask(reads.etags))
            self._mark = mark  # of before the answer, which may be newer: then the next look compares once more
            log.debug("told %d of those who wait", told)

    async def _ask(self, question: Callable[..., Answer], *arguments: object) -> Answer:
        answer = asyncio.get_running_loop().run_in_executor(self._thread, question, *arguments)
        try:
            found = await asyncio.wait_for(answer, PATIENCE_SECONDS)
        except (Error, TimeoutError) as error:
            if not self._is_away:
                log.warning("the database does not answer; those who wait are kept: %s", error or "it is silent")
            self._is_away = True
            raise DatabaseAway from error
        if self._is_away:
            log.warning("the database answers again")
        self._is_away = False
        return found
