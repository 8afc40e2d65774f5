"""Fixtures of real processes: Redis, the control plane on the test's database, and Chromium."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from harness.control_plane import ControlPlane
from harness.process import ManagedProcess
from harness.redis import RedisServer
from tests.support.databases import TestDatabase
from tests.support.needs import need

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",  # it refuses its sandbox to root
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis for the whole run; a test that stops it starts it again."""
    need("redis-server")
    with RedisServer() as server:
        yield server


@pytest.fixture
def control_plane(
    transactional_db: None, test_database: TestDatabase, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[ControlPlane]:
    """The control plane's processes on this test's database: ``.web()``, ``.worker()``, ``.beat()``.

    The test and the processes see each other's commits, and what the test enqueues reaches them. On PostgreSQL the
    broker is Redis as in production, on SQLite the folder of the embedded default; it is empty when the test begins.
    """
    env = test_database.environment()
    with contextlib.ExitStack() as stack:
        if test_database.server:
            redis = request.getfixturevalue("redis_server")
            redis.restart()
            env["FLEET_REDIS_URL"] = redis.url
            stack.enter_context(enqueueing_to(redis.url))
        else:
            shutil.rmtree(test_database.folder / "broker" / "queue")
            (test_database.folder / "broker" / "queue").mkdir()
        yield stack.enter_context(ControlPlane(tmp_path / "control-plane", env=env, settings="fleet.settings.test"))


@pytest.fixture
def celery_worker(control_plane: ControlPlane) -> Callable[..., ManagedProcess]:
    """Starts a real worker: ``celery_worker(concurrency=2, name="second")``."""
    return control_plane.worker


@contextlib.contextmanager
def enqueueing_to(url: str, options: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Within the block, what this process enqueues goes to another broker."""
    from fleet.celery import app  # noqa: PLC0415  (after the settings)

    before = app.conf.broker_url, app.conf.broker_transport_options
    app.conf.broker_url, app.conf.broker_transport_options = url, dict(options)
    app._after_fork()  # forgets the connections to the other broker
    try:
        yield
    finally:
        app.conf.broker_url, app.conf.broker_transport_options = before
        app._after_fork()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright; for a file, because what else runs in this process may use asyncio."""
    (executable,) = need("chromium")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (a second that most runs needn't spend)

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, in which Django would refuse to talk to its database.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """An empty page in a context of its own: no cookie of another test."""
    with visitor(chromium) as context:
        yield context.new_page()


@contextlib.contextmanager
def visitor(chromium: Browser, **options: Any) -> Iterator[BrowserContext]:
    """A browser context whose static files come through Playwright's own connection.

    Chromium drops what it is fetching when the host gets or loses an interface, as it does whenever another test's
    Podman starts a container; a page whose script was dropped stays without it.
    """
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
    context.route("**/static/**", lambda route: route.fulfill(response=route.fetch()))
    try:
        yield context
    finally:
        context.unroute_all(behavior="ignoreErrors")
        context.close()
