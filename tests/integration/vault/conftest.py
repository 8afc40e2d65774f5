from __future__ import annotations

from collections.abc import Iterator

import pytest

from fleet.core import clock
from tests.integration.admin.conftest import signed_in
from tests.integration.api.conftest import as_role
from tests.integration.vault.kit import Vault

__all__ = ["as_role", "signed_in"]


@pytest.fixture
def vault(db: None) -> Iterator[Vault]:
    """A fleet with secrets, whose clock stands still."""
    made = Vault()
    with clock.reading(lambda: made.world.now):
        yield made
