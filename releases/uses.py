"""Who may still have to fetch a release from the shelf; see :mod:`fleet.core.uses`."""

from __future__ import annotations

from fleet.core.uses import Uses
from releases.models import ShelvedRelease

_USES: Uses[ShelvedRelease] = Uses()
tell, of = _USES.tell, _USES.of
