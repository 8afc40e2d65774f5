from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.core import clock
from tests.integration.rollouts.world import World


@pytest.fixture
def world(db: None) -> Iterator[World]:
    """A fleet whose clock stands still."""
    made = World()
    with clock.reading(lambda: made.now):
        yield made
