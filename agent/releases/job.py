"""What the updater asks of its own ``fleet-updater fetch``: a file, because everybody can read what is in ``ps``."""

from __future__ import annotations

import msgspec

from agent.wire.manifest import AgentUpgrade


class FetchJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``archive``: the absolute path of the file that is to hold what lies at the target's address. What was fetched
    of it before a cut-off is in it already.
    """

    target: AgentUpgrade
    archive: str
