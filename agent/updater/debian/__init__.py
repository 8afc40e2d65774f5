"""Debian and its relatives, as the updater sees them."""

from agent.updater.debian.host import DebianHost
from agent.updater.debian.machine import DebianMachine

__all__ = ["DebianHost", "DebianMachine"]
