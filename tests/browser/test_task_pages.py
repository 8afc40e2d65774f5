"""Task runs and attempts in a browser: they stay true by themselves, fit a telephone, can be read, need no scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent.wire.messages import AttemptState
from devices.models import Device
from fleet.core import clock
from fleet.core.door import admit
from releases.services import release_note
from releases.services.shelving import Elsewhere
from tasks.models import TaskRun
from tasks.services import schedule_apply, taskrun_apply, taskrun_evaluate
from tests.browser.conftest import TELEPHONE
from tests.browser.probes import cut, faint, nameless, width
from tests.integration.admin.pages import at
from tests.integration.tasks.tasks import Tasks
from tests.integration.upgrades.agents import target
from tests.support.processes import visitor
from upgrades.services import agent_upgrade_set

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GOOD = Path(__file__).parents[1] / "contract" / "manifests" / "good"
SCHEDULE, RELEASE = GOOD / "taskschedule.yaml", GOOD / "agentrelease.yaml"
ELSEWHERE = Elsewhere(
    "1.4.0", "amd64", "ab" * 32, 23_400_000, "oci://registry.example.com:5000/fleet/agent:1.4.0-amd64"
)
pytestmark = [pytest.mark.clause("TSK-8"), pytest.mark.slow]


class Upgrading(Tasks):
    """A run whose first canary completed and whose second is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.now = clock.now()
        self.done, self.busy = self.updaters(["edge-1", "edge-2"], canary=True)
        self.updaters(["edge-3", "edge-4"])
        self.started = TaskRun.objects.get(pk=self.apply_run().pk)
        self.look(self.started)
        self.says_attempt(self.done, AttemptState.COMPLETED)
        self.at_step("simulate")

    def at_step(self, step: str, state: AttemptState = AttemptState.RUNNING, message: str = "") -> None:
        self.reports_attempt(self.busy, state, step=step, message=message)
        self.says_attempt(self.busy)
        self.look(self.started)


@pytest.fixture
def upgrading(transactional_db: None) -> Upgrading:
    return Upgrading()


def _pages(upgrading: Upgrading) -> dict[str, str]:
    Device.objects.filter(pk=upgrading.done.pk).update(updater_version="")  # its page says what is missing
    upgrading.at_step("upgrade", AttemptState.REPAIR_REQUIRED, "dpkg was interrupted")
    (admitted,) = admit(SCHEDULE.read_bytes())
    schedule = schedule_apply(manifest=admitted, actor=None).pk
    run, attempt = upgrading.started.pk, upgrading.attempt(upgrading.busy).pk
    agent_upgrade_set(device=upgrading.busy, target=target(), actor=None)
    shelved = release_note(elsewhere=ELSEWHERE, actor=None, notes="for the lab").pk
    (admitted,) = admit(RELEASE.read_bytes())
    rollout = taskrun_apply(manifest=admitted, actor=None).pk
    assert rollout
    taskrun_evaluate(run_id=rollout)
    return {
        "shelf": at("releases_shelvedrelease_changelist"),
        "release": at("releases_shelvedrelease_change", shelved),
        "new release": at("releases_shelvedrelease_add"),
        "release elsewhere": f"{at('releases_shelvedrelease_add')}?elsewhere",
        "agent rollouts": at("tasks_agentrelease_changelist"),
        "agent rollout": at("tasks_agentrelease_change", rollout),
        "new agent rollout": at("tasks_agentrelease_add"),
        "overview": at("index"),
        "runs": at("tasks_taskrun_changelist"),
        "run": at("tasks_taskrun_change", run),
        "new run": at("tasks_taskrun_add"),
        "confirmation": at("tasks_taskrun_recreate", run),
        "schedules": at("tasks_taskschedule_changelist"),
        "schedule": at("tasks_taskschedule_change", schedule),
        "suspension": at("tasks_taskschedule_suspend", schedule),
        "attempts": at("upgrades_attempt_changelist"),
        "attempt": at("upgrades_attempt_change", attempt),
        "device": at("devices_device_change", upgrading.busy.pk),
        "agents": at("upgrades_desiredagent_changelist"),
        "wanted agent": at("devices_device_set-agent", upgrading.busy.pk),
        "device without updater": at("devices_device_change", upgrading.done.pk),
    }


def test_a_page_follows_its_run_without_being_reloaded(
    live_server: Any,
    page: Page,
    complaints: list[str],
    sign_in: Callable[[Page, str], None],
    upgrading: Upgrading,
) -> None:
    sign_in(page, live_server.url)
    page.goto(f"{live_server.url}{at('tasks_taskrun_change', upgrading.started.pk)}")
    page.evaluate("window.neverReloaded = true")
    canaries = page.locator("[data-part=canaries]")
    canaries.get_by_text("simulate 4 of 8").wait_for()
    why = canaries.locator("details").last
    why.locator("summary").click()
    upgrading.at_step("reboot")
    canaries.get_by_text("reboot 7 of 8").wait_for()
    assert why.get_attribute("open") is not None  # what the reader opened stays open
    upgrading.at_step("verify", AttemptState.COMPLETED)
    page.locator(".hf-headline .hf-badge", has_text="Running").wait_for()
    page.locator("[data-part=targets]").get_by_text("Released").nth(1).wait_for()
    assert page.evaluate("window.neverReloaded") is True


def test_a_journal_grows_while_it_is_read(
    live_server: Any,
    page: Page,
    complaints: list[str],
    sign_in: Callable[[Page, str], None],
    upgrading: Upgrading,
) -> None:
    sign_in(page, live_server.url)
    page.goto(f"{live_server.url}{at('tasks_taskrun_change', upgrading.started.pk)}")
    page.get_by_role("row").filter(has_text="edge-2").get_by_role("link", name="timeline").click()
    journal = page.locator("[data-part=journal]")
    journal.get_by_text("simulate").wait_for()
    upgrading.at_step("upgrade", AttemptState.REPAIR_REQUIRED, "dpkg was interrupted")
    journal.get_by_text("upgrade").wait_for()
    page.locator("[data-part=headline]").get_by_text("sudo fleet-updater repair").wait_for()


def test_every_text_can_be_read_in_both_themes(
    live_server: Any, themed: Page, sign_in: Callable[[Page, str], None], upgrading: Upgrading
) -> None:
    sign_in(themed, live_server.url)
    for name, address in _pages(upgrading).items():
        themed.goto(f"{live_server.url}{address}")
        assert faint(themed) == [], name


def test_pages_fit_a_telephone_and_every_field_has_a_name(
    live_server: Any, telephone: Page, sign_in: Callable[[Page, str], None], upgrading: Upgrading
) -> None:
    telephone.set_viewport_size({"width": 1280, "height": 900})  # the side bar, for signing in
    sign_in(telephone, live_server.url)
    telephone.set_viewport_size({"width": TELEPHONE, "height": 844})
    for name, address in _pages(upgrading).items():
        telephone.goto(f"{live_server.url}{address}")
        assert width(telephone) <= TELEPHONE, name
        assert cut(telephone) == [], name
        assert nameless(telephone) == [], name


def test_a_run_is_read_and_ended_without_scripts(
    live_server: Any,
    page: Page,
    chromium: Browser,
    sign_in: Callable[[Page, str], None],
    upgrading: Upgrading,
) -> None:
    sign_in(page, live_server.url)
    with visitor(chromium, java_script_enabled=False, storage_state=page.context.storage_state()) as context:
        plain = context.new_page()
        plain.goto(f"{live_server.url}{at('tasks_taskrun_change', upgrading.started.pk)}")
        assert plain.get_by_text("simulate 4 of 8").is_visible()
        plain.get_by_role("link", name="End").click()
        plain.get_by_role("button", name="End").click()
        assert plain.locator(".hf-badge", has_text="Cancelled").first.is_visible()
