"""What an attempt is for, as the apps above say it, so that nothing here has to know them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

#: The addresses of the pages behind these attempts (by id), as far as it knows them: one query.
Origin = Callable[[Collection[int]], Mapping[int, str]]

_origins: list[Origin] = []


def add_origin(origin: Origin) -> Origin:
    """Link attempts to where they come from (a decorator)."""
    _origins.append(origin)
    return origin


def links(attempt_ids: Collection[int]) -> dict[int, str]:
    """The address of what each attempt is for; one that nobody knows has none."""
    found: dict[int, str] = {}
    for origin in _origins:
        found |= origin(attempt_ids)
    return found
