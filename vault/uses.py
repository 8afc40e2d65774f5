"""Who needs a secret. The apps above know; they say so here, so that nothing here has to know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vault.models import Secret

#: Names of objects that need this secret now.
Use = Callable[[Secret], Sequence[str]]

_uses: list[Use] = []


def tell(use: Use) -> Use:
    """Ask ``use`` too (a decorator)."""
    _uses.append(use)
    return use


def of(secret: Secret) -> list[str]:
    """Everything that needs this secret, sorted."""
    return sorted(name for use in _uses for name in use(secret))
