"""The control plane as processes: what the test enqueues is worked on, and a browser gets in."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from harness.control_plane import ControlPlane
from harness.waiting import wait_until
from rollouts import jobs

pytestmark = pytest.mark.slow


@pytest.mark.database(transaction=True)
def test_a_worker_does_what_the_test_enqueues(control_plane: ControlPlane) -> None:
    control_plane.worker()
    jobs.sweep.delay()
    wait_until(lambda: b"rollouts.sweep" in log_of(control_plane, "worker"), seconds=20, what="the worker got the job")
    wait_until(lambda: b"succeeded" in log_of(control_plane, "worker"), seconds=20, what="the job succeeded")


@pytest.mark.django_db(transaction=True)
def test_the_beat_rings_for_the_periodic_jobs(control_plane: ControlPlane) -> None:
    control_plane.worker()
    control_plane.beat()
    wait_until(
        lambda: b"rollouts.drain_reports" in log_of(control_plane, "worker"), seconds=20, what="a report is drained"
    )


@pytest.mark.django_db(transaction=True)
def test_a_browser_gets_in(control_plane: ControlPlane, page: Page) -> None:
    User.objects.create_superuser("ada", password="correct horse battery staple")
    address = control_plane.web()
    page.goto(f"{address}/admin/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("correct horse battery staple")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{address}/admin/")
    assert "Harmony Fleet" in page.title()


def log_of(plane: ControlPlane, name: str) -> bytes:
    return (plane.folder / f"{name}.log").read_bytes()
