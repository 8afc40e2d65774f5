"""Who needs a secret; see :mod:`fleet.core.uses`."""

from __future__ import annotations

from fleet.core.uses import Uses
from vault.models import Secret

_USES: Uses[Secret] = Uses()
tell, of = _USES.tell, _USES.of
