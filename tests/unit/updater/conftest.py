"""Shared by the tests of the updater's core."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.updaters import UpdatingDevice


@pytest.fixture
def device(tmp_path: Path) -> UpdatingDevice:
    """An updater on a simulated machine, with an agent that does its part."""
    return UpdatingDevice(tmp_path / "updater")
