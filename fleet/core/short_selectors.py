"""Selectors as people type them: ``role=analyzer,tier in (a,b),!spare``, in kubectl's grammar."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from django.db.models import Model, QuerySet

from agent.wire.manifest import LabelSelector, SelectorRequirement
from fleet.core.errors import Invalid
from fleet.core.labels import matches

M = TypeVar("M", bound=Model)
MAX_CHARS = 4096
_KEY = r"(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]*)"
_IN = re.compile(rf"{_KEY}\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)", re.ASCII)
_EQUAL = re.compile(rf"{_KEY}\s*(?P<word>==|=|!=)\s*(?P<values>[A-Za-z0-9._-]*)", re.ASCII)
_THERE = re.compile(rf"(?P<word>!?)\s*{_KEY}", re.ASCII)
_BETWEEN_PARTS = re.compile(r",(?![^(]*\))")


def parse(text: str) -> LabelSelector:
    """The selector that this text means.

    Raises:
        Invalid: names the part that is none.
    """
    if len(text) > MAX_CHARS:
        raise Invalid(f"the selector has {len(text)} characters; allowed: {MAX_CHARS}")
    try:
        requirements = [_requirement(part.strip()) for part in _BETWEEN_PARTS.split(text) if part.strip()]
        return msgspec.convert(
            {"matchExpressions": [msgspec.to_builtins(each) for each in requirements]}, LabelSelector
        )
    except msgspec.ValidationError as error:
        raise Invalid(f"the selector {text[:80]!r} is not allowed: {error}") from None


def _requirement(part: str) -> SelectorRequirement:
    if found := _IN.fullmatch(part):
        values = [value.strip() for value in found["values"].split(",")]
        return SelectorRequirement(found["key"], "In" if found["word"] == "in" else "NotIn", values)
    if found := _EQUAL.fullmatch(part):
        return SelectorRequirement(found["key"], "NotIn" if found["word"] == "!=" else "In", [found["values"]])
    if found := _THERE.fullmatch(part):
        return SelectorRequirement(found["key"], "DoesNotExist" if found["word"] else "Exists")
    raise Invalid(
        f"{part[:80]!r} is no part of a selector; allowed: key=value, key!=value, key in (a,b), key notin (a,b), "
        "key, !key, joined by commas"
    )


def selected(rows: QuerySet[M], text: str) -> QuerySet[M]:
    """Rows whose ``labels`` the selector selects: one query more, and the meaning that rollouts have."""
    selector = parse(text)
    found = rows.order_by().values_list("pk", "labels")
    return rows.filter(pk__in=[pk for pk, labels in found if matches(selector, labels)])
