from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.core import clock
from tests.integration.vault.kit import Vault


@pytest.fixture
def vault(db: None) -> Iterator[Vault]:
    """A fleet with secrets, whose clock stands still."""
    made = Vault()
    with clock.reading(lambda: made.world.now):
        yield made
