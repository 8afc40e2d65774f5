"""The door: what people write comes in here, whichever entrance they used, or is refused with every fault at once.

Bytes → :mod:`.reading` (YAML or JSON with limits) → :mod:`.schema` (shape) → ``agent.wire.rules`` (fields against each
other) → :class:`Admitted`. Nothing behind the door has to check again (DEP-1 to DEP-6, DEP-8).
"""

from fleet.core.door.admission import Admitted, ManifestInvalid, admit

__all__ = ["Admitted", "ManifestInvalid", "admit"]
