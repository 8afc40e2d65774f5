"""A person applies a manifest in the browser and watches it converge on devices, without touching the page."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from demo import devices as demo_devices
from devices import services
from devices.models import Connectivity, Device, DeviceGroup, Heartbeat
from harness.control_plane import ROOT, ControlPlane
from harness.waiting import wait_until
from rollouts.models import Deployment

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = ("edge-1", "edge-2", "edge-3")
CANARY = "edge-1"
LIMIT_SECONDS = 90
MANIFEST = """\
apiVersion: fleet.nationtech.io/v1alpha1
kind: Deployment
metadata:
  name: analysis-api
spec:
  allowedGroups: [lab]
  targetSelector:
    matchLabels:
      role: analyzer
  score:
    type: PodmanV0
    data:
      services:
        - name: analysis-api
          image: registry.example.com/analysis-api:1.0
          ports: ["8080:8080"]
"""


@pytest.mark.slow
@pytest.mark.clause("ADM-1", "DEP-1", "DEP-11")
def test_a_rollout_is_watched_from_apply_to_converged(
    control_plane: ControlPlane,
    page: Page,
    complaints: list[str],
    sign_in: Callable[[Page, str], None],
    device_folder: Path,
) -> None:
    server = control_plane.web()
    control_plane.worker()
    control_plane.beat()
    with contextlib.ExitStack() as stack:
        _start_devices(stack, device_folder, server)
        sign_in(page, server)
        _apply_with_preview(page)
        page.evaluate("window.neverReloaded = true")
        _watch(page)
        assert page.evaluate("window.neverReloaded") is True
        _story_is_complete(page)


def _start_devices(stack: contextlib.ExitStack, folder: Path, server: str) -> None:
    """Three enrolled, simulated devices with real agents; one of them is a canary."""
    fleet = [demo_devices.prepare(folder, name, server=server, socket=None) for name in NAMES]
    operator = User.objects.create_user("setup")
    group = DeviceGroup.objects.create(name="lab")
    _, token = services.token_create(
        name="browser test",
        expires_at=timezone.now() + timedelta(hours=1),
        use_limit=len(NAMES),
        labels={},
        groups=[group],
        actor=operator,
    )
    for device in fleet:
        subprocess.run(device.agent("enroll", "--token-file", "-"), input=token, text=True, cwd=ROOT, check=True)
    services.device_set_canary(device=Device.objects.get(name=CANARY), canary=True, actor=operator)
    for process in demo_devices.start_agents(fleet):
        stack.callback(process.stop)
    online = Heartbeat.objects.filter(connectivity=Connectivity.ONLINE, device__labels__role="analyzer")
    wait_until(lambda: online.count() == len(NAMES), seconds=60, what="all devices have reported")


def _apply_with_preview(page: Page) -> None:
    page.locator("#nav-sidebar").get_by_role("link", name="Deployments").click()
    page.get_by_role("link", name="Apply a manifest").first.click()
    page.get_by_role("textbox", name="Manifest").fill(MANIFEST)
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("would be created").wait_for()
    assert page.locator("[data-preview=matched]").inner_text() == "3 devices"
    assert page.locator("dd", has_text=CANARY).inner_text() == CANARY
    assert not Deployment.objects.exists()
    page.get_by_role("button", name="Apply").click()
    page.locator("[data-part=headline]").wait_for()


def _watch(page: Page) -> None:
    """The phases pass by, and the sentence says what each waits for."""
    headline = page.locator("[data-part=headline]")
    sentence = headline.locator(".hf-sentence")
    badge = headline.locator(".hf-headline .hf-badge")
    trying = headline.filter(has=page.locator(".hf-headline .hf-badge", has_text="Canary"))
    trying.filter(has_text=f"canary {CANARY}").wait_for(timeout=LIMIT_SECONDS * 1000)
    page.locator("[data-part=targets]").get_by_text("held").nth(len(NAMES) - 2).wait_for()
    badge.filter(has_text="Converged").wait_for(timeout=LIMIT_SECONDS * 1000)
    sentence.filter(has_text="Done: 3 devices proved this revision").wait_for()
    assert page.locator("[data-live-note]").inner_text() == "Live"


def _story_is_complete(page: Page) -> None:
    canaries, targets = page.locator("[data-part=canaries]"), page.locator("[data-part=targets]")
    assert canaries.get_by_role("row").filter(has_text=CANARY).get_by_text("converged").count() == 1
    assert targets.get_by_text("converged").count() == len(NAMES) - 1
    assert targets.get_by_text(re.compile(r"^[0-9a-f]{12}$")).count() == len(NAMES) - 1
    done = page.locator("[data-part=headline] .hf-phases .hf-done")
    assert done.count() == 4
