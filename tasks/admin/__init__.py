"""The admin's pages for task runs."""

from tasks.admin import taskrun

__all__ = ["taskrun"]
