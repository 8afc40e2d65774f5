from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from fleet.core import clock
from tests.integration.ctl.cli import Fleetctl
from tests.integration.rollouts.world import World

PASSWORD = "correct horse"


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    """A fleet whose clock stands still, for the server's threads too."""
    made = World()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def stranger(live_server: Any, world: World, tmp_path: Path) -> Iterator[Fleetctl]:
    """fleetctl with the server's address and nothing else."""
    cache.clear()
    yield Fleetctl(live_server.url, tmp_path / "config")
    cache.clear()


@pytest.fixture
def fleetctl(stranger: Fleetctl) -> Fleetctl:
    """fleetctl of an administrator who has logged in."""
    User.objects.create_superuser("ada", password=PASSWORD)
    done = stranger("login", "--username", "ada", "--password-stdin", stdin=PASSWORD + "\n")
    assert done.code == 0, done.stderr
    return stranger
