"""What only a browser can tell: pages stay true by themselves, fit a telephone, can be read, work without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from devices.models import Connectivity
from rollouts.models import Deployment
from tests.browser.conftest import TELEPHONE
from tests.browser.probes import cut, faint, nameless, width
from tests.integration.admin.pages import at
from tests.integration.rollouts.world import World
from tests.support.processes import visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.clause("ADM-1"), pytest.mark.slow]


class Fleet(World):
    """A world of today, because the server's pages read the real clock."""

    def __init__(self) -> None:
        super().__init__()
        from fleet.core import clock  # noqa: PLC0415

        self.now = clock.now()


@pytest.fixture
def rollout(transactional_db: None) -> tuple[Fleet, Deployment]:
    fleet = Fleet()
    canary, sick = fleet.device("edge-1", canary=True), fleet.device("edge-2", canary=True)
    fleet.devices(["edge-3", "edge-4"])
    fleet.goes(fleet.device("edge-5"), Connectivity.OFFLINE)
    deployment = fleet.rollout()
    fleet.says(canary, deployment, "converged")
    fleet.says(sick, deployment, "failed", "port 8080/tcp is held by grafana")
    fleet.drain()
    fleet.evaluate(deployment)
    return fleet, deployment


PAGES: dict[str, tuple[str, bool]] = {
    "overview": ("index", False),
    "devices": ("devices_device_changelist", False),
    "deployments": ("rollouts_deployment_changelist", False),
    "rollout": ("rollouts_deployment_change", True),
    "editor": ("rollouts_deployment_edit", True),
    "confirmation": ("rollouts_deployment_end", True),
    "new secret": ("vault_secret_add", False),
}


def _address(server: Any, name: str, deployment: Deployment) -> str:
    view, takes_object = PAGES[name]
    return f"{server.url}{at(view, *([deployment.pk] if takes_object else []))}"


def test_a_page_follows_its_rollout_without_being_reloaded(
    live_server: Any,
    page: Page,
    complaints: list[str],
    sign_in: Callable[[Page, str], None],
    rollout: tuple[Fleet, Deployment],
) -> None:
    fleet, deployment = rollout
    sign_in(page, live_server.url)
    page.goto(_address(live_server, "rollout", deployment))
    page.get_by_text("Canary edge-2 failed: port 8080/tcp is held by grafana").first.wait_for()
    why = page.locator("[data-part=canaries] details").first
    why.locator("summary").click()

    fleet.says(fleet.revision(deployment).targets.get(device_name="edge-2").device, deployment, "converged")
    fleet.drain()
    fleet.evaluate(deployment)
    page.locator(".hf-headline .hf-badge", has_text="Releasing").wait_for()
    assert page.locator("[data-part=headline]").get_by_text("offline since").count() == 1
    assert why.get_attribute("open") is not None  # what the reader opened stays open


def test_a_page_that_cannot_refresh_says_so_and_recovers(
    live_server: Any, page: Page, sign_in: Callable[[Page, str], None], rollout: tuple[Fleet, Deployment]
) -> None:
    sign_in(page, live_server.url)
    page.goto(_address(live_server, "rollout", rollout[1]))
    note = page.locator("[data-live-note]")
    note.filter(has_text="Live").wait_for()
    page.route("**/live/**", lambda route: route.abort())
    note.filter(has_text="Not up to date").wait_for()
    page.unroute("**/live/**")
    note.filter(has_text="Live").wait_for()


def test_a_page_whose_session_ended_says_so(
    live_server: Any, page: Page, sign_in: Callable[[Page, str], None], rollout: tuple[Fleet, Deployment]
) -> None:
    sign_in(page, live_server.url)
    page.goto(_address(live_server, "rollout", rollout[1]))
    page.context.clear_cookies()
    page.locator("[data-live-note]", has_text="signed out").wait_for()


def test_a_fault_leads_to_its_line(
    live_server: Any, page: Page, sign_in: Callable[[Page, str], None], rollout: tuple[Fleet, Deployment]
) -> None:
    sign_in(page, live_server.url)
    page.goto(_address(live_server, "editor", rollout[1]))
    editor = page.get_by_role("textbox", name="Manifest")
    editor.fill(editor.input_value().replace("image:", "imgae:"))
    page.get_by_role("button", name="Preview").click()
    page.locator("#faults [data-line]").first.click()
    selected = page.evaluate("document.getSelection().toString()")
    assert selected.strip()
    assert selected.strip() in editor.input_value()


def test_every_text_can_be_read_in_both_themes(
    live_server: Any, themed: Page, sign_in: Callable[[Page, str], None], rollout: tuple[Fleet, Deployment]
) -> None:
    sign_in(themed, live_server.url)
    for name in PAGES:
        themed.goto(_address(live_server, name, rollout[1]))
        assert faint(themed) == [], name


def test_pages_fit_a_telephone(
    live_server: Any, telephone: Page, sign_in: Callable[[Page, str], None], rollout: tuple[Fleet, Deployment]
) -> None:
    telephone.set_viewport_size({"width": 1280, "height": 900})  # the side bar, for signing in
    sign_in(telephone, live_server.url)
    telephone.set_viewport_size({"width": TELEPHONE, "height": 844})
    for name in PAGES:
        telephone.goto(_address(live_server, name, rollout[1]))
        assert width(telephone) <= TELEPHONE, name
        assert cut(telephone) == [], name


def test_pages_can_be_read_without_scripts(
    live_server: Any,
    page: Page,
    chromium: Browser,
    sign_in: Callable[[Page, str], None],
    rollout: tuple[Fleet, Deployment],
) -> None:
    sign_in(page, live_server.url)
    with visitor(chromium, java_script_enabled=False, storage_state=page.context.storage_state()) as context:
        plain = context.new_page()
        plain.goto(_address(live_server, "rollout", rollout[1]))
        assert plain.get_by_text("Canary edge-2 failed").first.is_visible()
        plain.get_by_role("link", name="End rollout").click()
        plain.get_by_role("button", name="End rollout").click()
        assert plain.locator(".hf-badge", has_text="Cancelled").first.is_visible()


def test_every_field_and_button_has_a_name(
    live_server: Any, page: Page, sign_in: Callable[[Page, str], None], rollout: tuple[Fleet, Deployment]
) -> None:
    sign_in(page, live_server.url)
    for name in (*PAGES, "token"):
        if name == "token":
            page.goto(f"{live_server.url}{at('devices_enrolmenttoken_add')}")
        else:
            page.goto(_address(live_server, name, rollout[1]))
        assert nameless(page) == [], name
        assert page.locator("h1, h2").first.is_visible()
