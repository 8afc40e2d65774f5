"""What an agent upgrade does on the device once its record is written. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.updater.actions import Deed
from agent.updater.binary.host import Trial


@dataclass(frozen=True)
class StartTrial(Deed):
    trial: Trial


@dataclass(frozen=True)
class StopAgent(Deed):
    pass


@dataclass(frozen=True)
class StartAgent(Deed):
    pass


@dataclass(frozen=True)
class Switch(Deed):
    """``active`` leads to ``place`` afterwards."""

    place: str


@dataclass(frozen=True)
class Restore(Deed):
    """The agent is stopped, ``active`` leads to ``place``, the agent is started."""

    place: str


@dataclass(frozen=True)
class Tidy(Deed):
    """What was staged goes, and releases that are superfluous. ``previous``: the one before a candidate that stays."""

    previous: str = ""
