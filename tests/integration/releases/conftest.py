from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.integration.api.conftest import as_role
from tests.integration.devices.door import Door

__all__ = ["as_role"]


@pytest.fixture(autouse=True)
def _own_files(settings: Settings, tmp_path: Path) -> None:
    """Archives of a test lie in its own folder."""
    settings.MEDIA_ROOT = tmp_path / "files"


@pytest.fixture
def door(db: None) -> Door:
    return Door()
