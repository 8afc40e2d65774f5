"""The admin's pages for task runs, and what they say before a device is forgotten."""

from tasks.admin import device_panel, taskrun

__all__ = ["device_panel", "taskrun"]
