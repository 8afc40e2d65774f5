"""The bell between those who change desired state and the processes where devices wait: Redis, where there is one.

It says "look", nothing else, so that a ring which is lost or comes twice costs time at most (ADR 8).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import AsyncIterator, Callable

import redis
import redis.asyncio
from celery import current_app
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger(__name__)

CHANNEL = "fleet.desired"
SCHEMES = ("redis://", "rediss://")
PATIENCE_SECONDS = 2.0
#: For how long a process rings no more after Redis failed: a request shall not wait for it again and again.
PAUSE_SECONDS = 15.0
#: After so much silence Redis is asked whether it is still there.
SILENCE_SECONDS = 15.0
LONGEST_RETRY_SECONDS = 15.0
_quiet_until = 0.0


def ring() -> None:
    """Let all waiting processes look, once the current transaction is committed."""
    if address():
        transaction.on_commit(_ring)


def address() -> str:
    """Of the Redis that is the broker too; empty when the broker is something else."""
    url = str(current_app.conf.broker_url)
    return url if url.startswith(SCHEMES) else ""


def _ring() -> None:
    global _quiet_until  # noqa: PLW0603  (a process has one Redis)
    if time.monotonic() < _quiet_until:
        return
    try:
        _ringer(address()).publish(CHANNEL, b"")
    except (redis.RedisError, OSError) as error:
        _quiet_until = time.monotonic() + PAUSE_SECONDS
        log.warning("could not ring for waiting devices: %s", error)


@functools.lru_cache(maxsize=1)
def _ringer(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        socket_timeout=PATIENCE_SECONDS,
        socket_connect_timeout=PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


async def hear(on_ring: Callable[[], None], on_hearing: Callable[[bool], None]) -> None:
    """Call ``on_ring`` for every ring, and once whenever one may have been missed; until cancelled.

    ``on_hearing`` is told whether rings can be heard at this moment.
    """
    failures = 0
    while True:
        try:
            async with _listener() as listener:
                await listener.subscribe(CHANNEL)
                on_hearing(True)
                failures = 0
                await _listen(listener, on_ring)
        except (redis.RedisError, OSError) as error:
            if not failures:
                log.warning("cannot hear when something changes, so the database is asked more often: %s", error)
        on_hearing(False)
        await asyncio.sleep(min(2.0**failures, LONGEST_RETRY_SECONDS))
        failures = min(failures + 1, 10)


@contextlib.asynccontextmanager
async def _listener() -> AsyncIterator[redis.asyncio.client.PubSub]:
    async with (
        redis.asyncio.Redis.from_url(address(), socket_connect_timeout=PATIENCE_SECONDS) as client,
        client.pubsub() as listener,
    ):
        yield listener


async def _listen(listener: redis.asyncio.client.PubSub, on_ring: Callable[[], None]) -> None:
    is_asked = False
    while True:
        message = await listener.get_message(timeout=SILENCE_SECONDS)
        if message is None and is_asked:
            raise redis.ConnectionError(f"silent for {2 * SILENCE_SECONDS:g} s")
        is_asked = message is None
        if message is None:
            await listener.ping()
        elif message["type"] != "pong":  # the subscription's own confirmation too: what came before it was missed
            on_ring()
