"""The admin's pages for task runs and schedules, and what they say before a device is forgotten."""

from tasks.admin import agent_release, device_panel, previews, schedule, taskrun

__all__ = ["agent_release", "device_panel", "previews", "schedule", "taskrun"]
