"""The admin's pages for devices, groups and enrolment tokens."""

from devices.admin import device, group, token

__all__ = ["device", "group", "token"]
