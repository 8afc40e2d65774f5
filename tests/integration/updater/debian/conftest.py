"""Real apt and dpkg on a package database of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.updater.debian import DebianMachine
from tests.support.debians import SmallDebian
from tests.support.needs import need, need_root


@pytest.fixture
def debian(tmp_path: Path) -> SmallDebian:
    need_root("dpkg writes to a package database")
    need("apt-get", "apt-ftparchive", "dpkg", "dpkg-deb")
    return SmallDebian(tmp_path / "debian")


@pytest.fixture
def machine(debian: SmallDebian, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DebianMachine:
    """The updater's machine, on that Debian."""
    debian.lead(monkeypatch)
    return DebianMachine(tmp_path / "updater")
