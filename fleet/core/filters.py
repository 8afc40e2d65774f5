"""Filters of lists that say what they take: a value that is none must not show everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django_filters import rest_framework as filters

Choices = Iterable[tuple[Any, Any]]


def _words(choices: Choices) -> dict[str, str]:
    allowed = ", ".join(str(value) for value, _ in choices)
    words = f"found %(value)s; allowed: {allowed}"
    return {"invalid_choice": words}


class AnyOfFilter(filters.MultipleChoiceFilter):
    """One or several of a few words; the parameter may be repeated."""

    def __init__(self, *, choices: Choices, **more: Any) -> None:
        pairs = list(choices)
        super().__init__(choices=pairs, error_messages=_words(pairs), **more)


class TrueFalseFilter(filters.TypedChoiceFilter):
    """``true`` or ``false``; django-filter's own takes whatever else for "any"."""

    def __init__(self, **more: Any) -> None:
        pairs = [("true", "true"), ("false", "false")]
        super().__init__(choices=pairs, coerce=lambda text: text == "true", error_messages=_words(pairs), **more)
