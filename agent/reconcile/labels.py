"""The labels by which the agent knows its own containers, and the keyed hashes in them.

Hashes are HMACs with a key that never leaves the device: who reads a label can neither guess a secret from it nor
compare two devices (AGT-10).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.wire import canonical

PREFIX = "io.nationtech.fleet."
DEVICE = f"{PREFIX}device"
DEPLOYMENT = f"{PREFIX}deployment"
UID = f"{PREFIX}uid"
ROLE = f"{PREFIX}role"
SCORE_HASH = f"{PREFIX}score-hash"
SERVICE_HASH = f"{PREFIX}service-hash"

INIT = "init"
SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a container is: this device as it was enrolled, and the key for its hashes."""

    device_uid: str
    key: bytes

    def keyed_hash(self, value: Any) -> str:
        """HMAC-SHA256 of the canonical form; equal for equal meaning, on this device only."""
        return hmac.new(self.key, canonical.encode(value), hashlib.sha256).hexdigest()

    def owns(self, labels: Mapping[str, str]) -> bool:
        return labels.get(DEVICE) == self.device_uid and bool(labels.get(UID))
