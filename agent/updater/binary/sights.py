"""What a decision about an agent upgrade may need to see, in plain data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.releases.description import Release
from agent.updater.actions import Seen
from agent.updater.binary.host import AgentStatus
from agent.updater.machine import JobStatus, Volume


class Sight(StrEnum):
    """What can be looked at; the value is the field of :class:`View` that it fills.

    ``VERIFIED`` and ``UNPACKED`` do the work whose outcome they are, as often as they are asked.
    """

    ACTIVE = "active"
    INSTALLED = "installed"
    KEPT = "kept"
    VOLUMES = "volumes"
    ARCHITECTURE = "architecture"
    TRIAL = "trial"
    VERIFIED = "verified"
    UNPACKED = "unpacked"
    CANDIDATE = "candidate"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Look:
    """Look at this, then ask again."""

    sight: Sight


@dataclass(frozen=True, slots=True)
class Installed:
    """The release that ``active`` leads to. ``damage``: what is wrong with it, or empty."""

    release: Release | None
    damage: str


@dataclass(frozen=True, slots=True)
class View:
    """``None``: not looked at yet. ``active``: the place; ``kept``: whether the target lies at its place, whole;
    ``verified``, ``unpacked``: why not, or empty.
    """

    seen: Seen
    active: str | None = None
    installed: Installed | None = None
    kept: bool | None = None
    volumes: Mapping[str, Volume] | None = None
    architecture: str | None = None
    trial: JobStatus | None = None
    verified: str | None = None
    unpacked: str | None = None
    candidate: Release | None = None
    agent: AgentStatus | None = None

    def having(self, sight: Sight, found: object) -> View:
        """What is known after a look."""
        return replace(self, **{sight.value: found})  # type: ignore[arg-type]  # the sight is the field's name
