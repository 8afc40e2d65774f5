from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.core import clock
from tests.integration.devices.door import Door


@pytest.fixture
def door(db: None) -> Iterator[Door]:
    """The agent-facing API, at a time that stands still."""
    made = Door()
    with clock.reading(lambda: made.now):
        yield made
