"""Who needs an object. The apps above know; they say so, so that the app below has not to know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Uses(Generic[T]):
    """What is asked of an object before it is taken away."""

    def __init__(self) -> None:
        self._uses: list[Callable[[T], Sequence[str]]] = []

    def tell(self, use: Callable[[T], Sequence[str]]) -> Callable[[T], Sequence[str]]:
        """Ask ``use`` too (a decorator): for the names of objects that need this one now."""
        self._uses.append(use)
        return use

    def of(self, needed: T) -> list[str]:
        """Everything that needs it, sorted."""
        return sorted(name for use in self._uses for name in use(needed))
