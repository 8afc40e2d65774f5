"""The admin's pages for deployments, and what they add to a device's page."""

from rollouts.admin import deployment, device_panel, previews

__all__ = ["deployment", "device_panel", "previews"]
