from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Group, User

from tests.support.processes import visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

PASSWORD = "correct horse battery"
#: How wide a telephone is.
TELEPHONE = 390


@pytest.fixture
def sign_in(transactional_db: None) -> Callable[[Page, str], None]:
    """Sign an administrator in by the form, as a person does."""

    def do(page: Page, server: str) -> None:
        user = User.objects.create_user("ada", password=PASSWORD, is_staff=True)
        user.groups.add(Group.objects.get(name="administrator"))
        page.goto(f"{server}/admin/")
        page.get_by_label("Username").fill("ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.locator("#nav-sidebar").get_by_role("link", name="Deployments").wait_for()

    return do


@pytest.fixture
def complaints(page: Page) -> Iterator[list[str]]:
    """What the browser complains about, and what it fetches from elsewhere; empty in the end."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("console", lambda message: found.append(message.text) if _is_a_complaint(message) else None)
    page.on("request", lambda request: None if _ours(request.url) else found.append(f"fetched {request.url}"))
    yield found
    assert found == []


def _is_a_complaint(message: ConsoleMessage) -> bool:
    """Chromium gives up a request when the host gets a new interface, as Podman makes them; the page asks again."""
    return message.type == "error" and "ERR_NETWORK_CHANGED" not in message.text


def _ours(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:"))


@pytest.fixture
def device_folder(tmp_path: Path) -> Iterator[Path]:
    """Where simulated devices keep their files."""
    yield tmp_path / "devices"
    shutil.rmtree(tmp_path / "devices", ignore_errors=True)


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Page]:
    with visitor(chromium, color_scheme=request.param) as context:
        yield context.new_page()


@pytest.fixture
def telephone(chromium: Browser) -> Iterator[Page]:
    with visitor(chromium, viewport={"width": TELEPHONE, "height": 844}, has_touch=True) as context:
        yield context.new_page()
