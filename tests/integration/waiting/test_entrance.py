"""The waiting entrance in this process, on a real database: who gets which answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.db.models import F

from devices.models import Credential, DesiredHead
from devices.waiting.entrance import PATH, WaitingEntrance
from tests.integration.waiting.crowd import FIRST, enrolled

pytestmark = pytest.mark.database(transaction=True)

Settings = Any


class Entrance:
    """One running application, called as a server calls it."""

    def __init__(self, **options: float) -> None:
        self.application = WaitingEntrance(**{"limit": 10, "look_seconds": 0.05} | options)
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()

    async def __aenter__(self) -> Entrance:
        started = asyncio.Event()

        async def send(message: Any) -> None:
            started.set()

        self._life = asyncio.create_task(self.application({"type": "lifespan"}, self._events.get, send))
        await self._events.put({"type": "lifespan.startup"})
        await started.wait()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._events.put({"type": "lifespan.shutdown"})
        await self._life

    def ask(self, credential: str = "", etag: str = FIRST, **how: Any) -> Request:
        return Request(self.application, credential, etag, **how)

    async def waiting(self) -> int:
        return int(json.loads((await self.ask(path="/readyz").answer())[2])["waiting"])

    async def until_waiting(self, count: int) -> None:
        async with asyncio.timeout(5):
            while await self.waiting() != count:
                await asyncio.sleep(0.01)


class Request:
    """One request, on its way already."""

    def __init__(
        self,
        application: WaitingEntrance,
        credential: str,
        etag: str,
        *,
        path: str = PATH,
        query: str = "",
        method: str = "GET",
        proto: str = "",
    ) -> None:
        headers = [(b"if-none-match", etag.encode())]
        headers += [(b"authorization", f"Bearer {credential}".encode())] if credential else []
        headers += [(b"x-forwarded-proto", proto.encode())] if proto else []
        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers}
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        self.sent: list[Any] = []
        self.task = asyncio.create_task(application(scope, self._incoming.get, self._send))

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    def hang_up(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        async with asyncio.timeout(10):
            await self.task
        start, body = self.sent
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], headers, body["body"]


def run(scenario: Callable[[Entrance], Awaitable[None]], **options: float) -> None:
    async def play() -> None:
        async with Entrance(**options) as entrance:
            await scenario(entrance)

    asyncio.run(play())


async def in_database(change: Callable[[], object]) -> None:
    """From another thread, because Django wants no database in an event loop's."""

    def change_and_leave() -> None:
        from django.db import connections  # noqa: PLC0415

        change()
        connections.close_all()

    await asyncio.to_thread(change_and_leave)


def bump(**device: object) -> None:
    """A change whose bell is lost."""
    DesiredHead.objects.filter(**device).update(version=F("version") + 1)


def test_who_has_an_older_version_is_told_at_once_and_others_wait_to_the_end_of_their_time() -> None:
    enrolled(2)

    async def scenario(entrance: Entrance) -> None:
        newer, same = entrance.ask("edge-0", '"1.0"'), entrance.ask("edge-1", f"W/{FIRST}", query="seconds=1")
        never_polled = entrance.ask("edge-0", "")
        assert [(await each.answer())[0] for each in (newer, never_polled)] == [204, 204]
        status, headers, body = await same.answer()
        assert (status, headers["etag"], headers["cache-control"], body) == (304, FIRST, "no-store", b"")

    run(scenario)


def test_a_change_ends_the_wait_of_that_device_only() -> None:
    enrolled(3)

    async def scenario(entrance: Entrance) -> None:
        held = [entrance.ask(f"edge-{number}") for number in range(3)]
        await entrance.until_waiting(3)
        await in_database(lambda: bump(device__name="edge-1"))
        assert (await held[1].answer())[0] == 204
        assert await entrance.waiting() == 2
        for each in held:
            each.hang_up()

    run(scenario)


def test_a_change_between_two_of_a_devices_waits_is_not_missed() -> None:
    enrolled(1)

    async def scenario(entrance: Entrance) -> None:
        first = entrance.ask("edge-0", query="seconds=1")
        assert (await first.answer())[0] == 304
        await in_database(bump)
        assert (await entrance.ask("edge-0").answer())[0] == 204

    run(scenario)


def test_the_credential_decides() -> None:
    enrolled(1)

    async def scenario(entrance: Entrance) -> None:
        unknown, none = await entrance.ask("guess").answer(), await entrance.ask().answer()
        assert (unknown[0], none[0]) == (401, 401)
        assert unknown[1]["content-type"] == "application/problem+json"
        assert "this credential is unknown" in json.loads(unknown[2])["detail"]
        await in_database(lambda: Credential.objects.all().delete())
        assert (await entrance.ask("edge-0").answer())[0] == 401

    run(scenario)


def test_a_full_process_says_so_and_a_device_that_hangs_up_makes_room() -> None:
    enrolled(3)

    async def scenario(entrance: Entrance) -> None:
        held = [entrance.ask("edge-0"), entrance.ask("edge-1")]
        await entrance.until_waiting(2)
        status, headers, _ = await entrance.ask("edge-2").answer()
        assert (status, headers["retry-after"]) == (503, "30")
        held[0].hang_up()
        await entrance.until_waiting(1)
        assert held[0].sent == []
        third = entrance.ask("edge-2")
        await entrance.until_waiting(2)
        held[1].hang_up()
        third.hang_up()

    run(scenario, limit=2)


def test_a_device_that_comes_again_takes_its_own_place() -> None:
    enrolled(1)

    async def scenario(entrance: Entrance) -> None:
        older = entrance.ask("edge-0")
        await entrance.until_waiting(1)
        newer = entrance.ask("edge-0")
        assert (await older.answer())[0] == 304
        assert await entrance.waiting() == 1
        await in_database(bump)
        assert (await newer.answer())[0] == 204

    run(scenario)


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ({"method": "POST"}, 405, "allowed: GET"),
        ({"path": "/api/agent/v1/desired"}, 404, "serves /api/agent/v1/wait and nothing else"),
        ({"query": "seconds=soon"}, 422, "seconds is 'soon'; allowed: a whole number above 0"),
        ({"query": "seconds=0"}, 422, "seconds is '0'"),
        ({"query": "&".join(f"a{number}=1" for number in range(2000))}, 422, "more than 10 parameters"),
        ({"query": "seconds=%D9%A3"}, 422, "allowed: a whole number"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(how: dict[str, str], status: int, says: str) -> None:
    enrolled(1)

    async def scenario(entrance: Entrance) -> None:
        found, _, body = await entrance.ask("edge-0", **how).answer()
        assert found == status
        assert says in json.loads(body)["detail"]

    run(scenario)


def test_a_credential_never_travels_in_clear_where_tls_is_asked_for(settings: Settings) -> None:
    enrolled(1)
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

    async def scenario(entrance: Entrance) -> None:
        assert (await entrance.ask("edge-0", "").answer())[0] == 403
        assert (await entrance.ask("edge-0", "", proto="http").answer())[0] == 403
        assert (await entrance.ask("edge-0", "", proto="https").answer())[0] == 204
        assert (await entrance.ask(path="/healthz").answer())[0] == 200

    run(scenario)
