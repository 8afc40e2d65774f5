"""Fixtures for all tests; what they start is in harness/ (which the demo and the benchmarks share)."""

from __future__ import annotations

import os

import hypothesis
import pytest

from tests.support import needs
from tests.support.databases import django_db_modify_db_settings
from tests.support.podman import containers, free_port, own_containers, shared_containers
from tests.support.processes import celery_worker, chromium, control_plane, page, redis_server

__all__ = [
    "celery_worker",
    "chromium",
    "containers",
    "control_plane",
    "django_db_modify_db_settings",  # here, because a conftest's fixture replaces pytest-django's
    "free_port",
    "own_containers",
    "page",
    "redis_server",
    "shared_containers",
]


# No deadline, because two busy cores are slow at times. In CI the same examples every time, so that a change is judged
# by what it changed; developers' runs look for new ones.
hypothesis.settings.register_profile("fleet", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.load_profile("fleet")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("root"):
        needs.need_root(mark.args[0])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in needs.missing():
        terminalreporter.write_line(f"not set up: {line}", yellow=True)
