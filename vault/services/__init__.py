"""Every write to secrets."""

from vault.services.rotating import Rotated, secrets_rotate
from vault.services.writing import secret_delete, secret_merge, secret_put

__all__ = ["Rotated", "secret_delete", "secret_merge", "secret_put", "secrets_rotate"]
