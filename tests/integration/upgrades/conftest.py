from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.core import clock
from tests.integration.upgrades.agents import Agents


@pytest.fixture
def agents(db: None) -> Iterator[Agents]:
    """A fleet whose updaters are played, and whose clock stands still."""
    made = Agents()
    with clock.reading(lambda: made.now):
        yield made
