from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.core import clock
from tests.integration.tasks.tasks import Tasks


@pytest.fixture
def tasks(db: None) -> Iterator[Tasks]:
    """A fleet whose updaters are simulated, and whose clock stands still."""
    made = Tasks()
    with clock.reading(lambda: made.now):
        yield made
