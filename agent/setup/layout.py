"""Where everything lies on a device, and who owns it. ``root`` is ``/`` but in tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

USER = "harmony-fleet"
AGENT_UNIT = "harmony-fleet-agent.service"
UPDATER_UNIT = "harmony-fleet-updater.service"
PODMAN_UNIT = "harmony-fleet-podman.service"
#: In the order in which they are started.
UNITS = (PODMAN_UNIT, UPDATER_UNIT, AGENT_UNIT)
PODMAN_SOCKET = "/run/harmony-fleet-podman/podman.sock"
HOME = "/var/lib/harmony-fleet/podman"
AGENT_STATE = "/var/lib/harmony-fleet/agent"
UPDATER_STATE = "/var/lib/harmony-fleet/updater"
#: Of archives that are being downloaded; each attempt has a folder there that is the agent's user's.
STAGING = "/var/lib/harmony-fleet/staging"


@dataclass(frozen=True, slots=True)
class Folder:
    """``owner`` is also its group's name unless ``group`` says otherwise."""

    path: str
    mode: int
    owner: str = "root"
    group: str = ""


FOLDERS = (
    Folder("/etc/harmony-fleet", 0o755),
    # The agent reads secrets and cannot change them.
    Folder("/etc/harmony-fleet/secrets", 0o750, "root", USER),
    Folder("/var/lib/harmony-fleet", 0o755),
    Folder(AGENT_STATE, 0o700, USER),
    Folder(HOME, 0o700, USER),
    Folder(UPDATER_STATE, 0o700),
    Folder(STAGING, 0o755),
    Folder("/opt/harmony-fleet", 0o755),
    Folder("/opt/harmony-fleet/releases", 0o755),
    Folder("/opt/harmony-fleet/updaters", 0o755),
)


@dataclass(frozen=True, slots=True)
class Layout:
    root: Path = Path("/")

    def at(self, path: str) -> Path:
        """An absolute path of the device below ``root``."""
        return self.root / path.lstrip("/")

    @property
    def agent_config(self) -> Path:
        return self.at("/etc/harmony-fleet/agent.toml")

    @property
    def updater_config(self) -> Path:
        return self.at("/etc/harmony-fleet/updater.toml")

    @property
    def units(self) -> Path:
        return self.at("/etc/systemd/system")

    @property
    def opt(self) -> Path:
        return self.at("/opt/harmony-fleet")
