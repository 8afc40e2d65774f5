"""The one order of locks: a secret first, then its entries (case R6)."""

from __future__ import annotations

from vault.models import Secret


def locked(pk: int) -> Secret | None:
    """The secret under a lock until the transaction ends; None when it was deleted meanwhile.

    Whoever writes entries holds it, so of two writers one comes whole after the other.
    """
    return Secret.objects.select_for_update().filter(pk=pk).first()
