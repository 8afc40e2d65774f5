"""The admin's pages for attempts and wanted agents, and what they add to a device's page."""

from upgrades.admin import agent, attempt, device_panel

__all__ = ["agent", "attempt", "device_panel"]
