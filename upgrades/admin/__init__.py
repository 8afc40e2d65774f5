"""The admin's pages for attempts, and what they add to a device's page."""

from upgrades.admin import attempt, device_panel

__all__ = ["attempt", "device_panel"]
