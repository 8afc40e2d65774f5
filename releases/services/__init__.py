"""Every write to the shelf."""

from releases.services.shelving import release_note, release_remove, release_upload

__all__ = ["release_note", "release_remove", "release_upload"]
