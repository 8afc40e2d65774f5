"""The admin's page of the shelf."""

from releases.admin import release

__all__ = ["release"]
