"""The HTTP side of waiting: ``GET /api/agent/v1/wait?seconds=N`` with the ETag of the last poll.

204: something changed, poll. 304: nothing did. 401, 403, 405, 422 and 503 are problem documents as everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import random
import resource
import signal
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from types import FrameType
from typing import Any
from urllib.parse import parse_qs

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, JsonResponse

from devices.agent_views import over_plain_http, problem, refusal, refuse_plain_http, token_hash, unknown_credential
from devices.waiting import bell
from devices.waiting.clerk import Clerk
from devices.waiting.room import Outcome, Room, Waiter
from fleet.core.errors import Busy, FleetError, Invalid, NotFound

log = logging.getLogger(__name__)
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PATH = "/api/agent/v1/wait"
#: Below the minute after which proxies give up on a silent server.
LONGEST_SECONDS = 55
MOST_FIELDS = 10
#: Waits end up to so much earlier, each at random, so that devices which came together don't come together again.
JITTER = 0.1
#: Open files that are not devices: the database, Redis, the listening socket, the log.
OTHER_FILES = 100


class WaitingEntrance:
    """The ASGI application. One per process; holds at most ``limit`` requests."""

    def __init__(self, *, limit: int, look_seconds: float) -> None:
        self._limit = limit
        self._look_seconds = look_seconds
        self._room = Room()
        self._clerk: Clerk | None = None
        self._inside = 0
        self._dice = random.Random()  # noqa: S311  (spreads load, hides nothing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and (response := await self._answer(scope, receive)):
            await _send(response, send)

    # The process ---------------------------------------------------------------------------------------------------

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._clerk = clerk = Clerk(self._room, look_seconds=self._look_seconds)
        self._limit = min(self._limit, files_allowed(self._limit + OTHER_FILES) - OTHER_FILES)
        work = [asyncio.create_task(clerk.run())]
        if bell.address():
            work.append(asyncio.create_task(bell.hear(clerk.ring, clerk.set_hearing)))
        with self._closing_on_signals(asyncio.get_running_loop()):
            await send({"type": "lifespan.startup.complete"})
            await receive()
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await send({"type": "lifespan.shutdown.complete"})

    @contextlib.contextmanager
    def _closing_on_signals(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """The server lets held requests end before it says that it ends, so we have to notice by ourselves.

        Its own way of noticing stays in force: an event loop is woken by every signal, whatever its handler.
        """

        def close(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._close)
            if callable(before[number]):
                before[number](number, frame)

        before: dict[int, Any] = {each: signal.signal(each, close) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _close(self) -> None:
        self._limit = 0
        self._room.close()
        if self._clerk:
            self._clerk.close()

    # A request -----------------------------------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive) -> HttpResponse | None:
        """None when nobody is there any more to read one."""
        path = scope["path"]
        if path == "/healthz":
            return HttpResponse("ok\n", content_type="text/plain")
        if path == "/readyz":
            return self._ready()
        try:
            return await self._wait(scope, receive)
        except FleetError as error:
            return refusal(error)

    def _ready(self) -> HttpResponse:
        fault = self._clerk.fault if self._clerk else "it does not serve yet"
        faults = {"database": fault} if fault else {}
        return JsonResponse(
            {"ready": not faults, "faults": faults, "waiting": len(self._room)}, status=503 if faults else 200
        )

    async def _wait(self, scope: Scope, receive: Receive) -> HttpResponse | None:
        if scope["path"] != PATH:
            raise NotFound(f"this process serves {PATH} and nothing else; the proxy in front has to know that")
        request = ASGIRequest(scope, io.BytesIO())
        if request.method != "GET":
            response = problem(405, f"{request.method} is not known here; allowed: GET")
            response["Allow"] = "GET"
            return response
        if over_plain_http(request):
            return refuse_plain_http()
        waiter = Waiter(token_hash(request), request.META.get("HTTP_IF_NONE_MATCH", ""))
        seconds = _seconds_of(scope["query_string"]) * self._dice.uniform(1 - JITTER, 1)
        if self._inside >= self._limit or self._clerk is None:
            raise Busy("this process holds as many devices as it may, or is about to end; poll meanwhile")
        del request  # a thousand of them are held otherwise
        return self._response(await self._outcome(waiter, self._clerk, receive, seconds), waiter)

    async def _outcome(self, waiter: Waiter, clerk: Clerk, receive: Receive, seconds: float) -> Outcome:
        self._inside += 1
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(lambda _: waiter.end(Outcome.GONE))
        clerk.let_in(waiter)
        try:
            await asyncio.wait([waiter.outcome], timeout=seconds)
            waiter.end(Outcome.UNCHANGED if waiter.device_id else Outcome.BUSY)
        finally:
            self._inside -= 1
            self._room.leave(waiter)
            gone.cancel()
        return waiter.outcome.result()

    def _response(self, outcome: Outcome, waiter: Waiter) -> HttpResponse | None:
        if outcome is Outcome.GONE:
            return None
        if outcome is Outcome.UNKNOWN:
            raise unknown_credential()
        if outcome is Outcome.BUSY:
            raise Busy("the control plane can't let you wait at this moment; poll meanwhile")
        response = HttpResponse(status=204 if outcome is Outcome.CHANGED else 304)
        del response["Content-Type"]
        response["Cache-Control"] = "no-store"
        if outcome is Outcome.UNCHANGED:
            response["ETag"] = waiter.etag
        return response


async def _gone(receive: Receive) -> None:
    """Returns when the other end has hung up."""
    with contextlib.suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass


def _seconds_of(query: bytes) -> int:
    """Not by Django's own reading: its error about too many parameters is none of ours."""
    try:
        values = parse_qs(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_FIELDS).get("seconds")
    except ValueError:
        raise Invalid(f"the address has more than {MOST_FIELDS} parameters; allowed: seconds") from None
    text = values[-1] if values else str(LONGEST_SECONDS)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise Invalid(f"seconds is {text[:20]!r}; allowed: a whole number above 0 (more than {LONGEST_SECONDS} is cut)")
    return min(int(text), LONGEST_SECONDS)


async def _send(response: HttpResponse, send: Send) -> None:
    response["X-Content-Type-Options"] = "nosniff"
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


def files_allowed(wanted: int) -> int:
    """How many files this process may have open, after raising the limit towards ``wanted``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft != resource.RLIM_INFINITY and soft < wanted:
        log.warning("%d open files are allowed, %d would be needed; fewer devices can wait (ulimit -n)", soft, wanted)
        return soft
    return wanted
