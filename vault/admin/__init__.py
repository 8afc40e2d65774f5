"""The admin's pages for secrets."""

from vault.admin import secret

__all__ = ["secret"]
