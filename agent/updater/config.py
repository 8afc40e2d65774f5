"""The updater's configuration: one TOML file that belongs to root, and complaints that name key and line."""

from __future__ import annotations

import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent.complaint import at
from agent.config import ConfigError, Section, checked, read
from agent.updater.binary.steps import DOWNLOAD, PROBE, READINESS, RESTORE
from agent.updater.simulated import Faults, Pace
from agent.wire.updater import DEFAULT_SOCKET

DEFAULT_PATH = Path("/etc/harmony-fleet/updater.toml")
#: A unix socket's address has 108 bytes with its end.
MAX_SOCKET_CHARS = 107

AbsolutePath = Annotated[str, Meta(pattern="^/")]
UserName = Annotated[str, Meta(min_length=1, max_length=64)]
#: None above what a trial's own unit allows it.
Limit = Annotated[float, Meta(ge=5, le=3_600)]
DownloadLimit = Annotated[float, Meta(ge=5, le=21_600)]


class Place(Section, frozen=True):
    """``agent_user`` may ask over the socket, besides root; its group is the socket's."""

    agent_user: UserName = "harmony-fleet"
    state_dir: AbsolutePath = "/var/lib/harmony-fleet/updater"
    socket: Annotated[str, Meta(pattern="^/", max_length=MAX_SOCKET_CHARS)] = DEFAULT_SOCKET


class MachineChoice(Section, frozen=True):
    """``kind`` is ``debian`` or, for demos and tests, ``simulated``, which upgrades nothing."""

    kind: Annotated[str, Meta(pattern="^(debian|simulated)$")] = "debian"
    simulated: Faults | None = None
    pace: Pace | None = None


class AgentUpgradeLimits(Section, frozen=True):
    """How long these steps of an agent upgrade may take, in seconds; a slow site wants more."""

    download_seconds: DownloadLimit = 7200.0
    probe_seconds: Limit = 300.0
    readiness_seconds: Limit = 600.0
    restore_seconds: Limit = 300.0

    def by_step(self) -> dict[str, float]:
        return {
            DOWNLOAD: self.download_seconds,
            PROBE: self.probe_seconds,
            READINESS: self.readiness_seconds,
            RESTORE: self.restore_seconds,
        }


class Config(Section, frozen=True):
    updater: Place = Place()
    machine: MachineChoice = MachineChoice()
    agent_upgrade: AgentUpgradeLimits = AgentUpgradeLimits()

    @property
    def state_dir(self) -> Path:
        return Path(self.updater.state_dir)


@dataclass(frozen=True, slots=True)
class Peer:
    """The agent's user and its group, as this device knows them."""

    uid: int
    gid: int


def load(path: Path) -> Config:
    """Read a file; one that does not exist says nothing else than the defaults.

    Raises:
        ConfigError: when it is not TOML, or has a wrong or unknown key.
    """
    return checked(read(path), str(path), Config) if path.exists() else Config()


def peer(config: Config, path: Path) -> Peer:
    """Who the agent is. Raises ConfigError when this device has no such user."""
    name = config.updater.agent_user
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        text = read(path) if path.exists() else ""
        what = f'this device has no user "{name}"; run: fleet-agent setup'
        raise ConfigError(f"{path}: {at(text, ('updater', 'agent_user'), what)}") from None
    return Peer(user.pw_uid, user.pw_gid)
