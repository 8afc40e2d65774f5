"""docs/reference/api.md lists what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.core import errors
from fleet.core.rest import ApiView
from fleet.urls import api

pytestmark = pytest.mark.clause("API-1")
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text()
ROWS = {(method, path): rest for method, path, rest in re.findall(r"^\| `([A-Z]+) ([^`]+/)` \| (.+) \|$", PAGE, re.M)}


def views() -> Iterator[tuple[str, type[ApiView]]]:
    """Each address, with names in braces, and its view."""
    for entry in api:
        for pattern in getattr(entry, "url_patterns", [entry]):
            view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
            if view is not None and issubclass(view, ApiView):
                yield re.sub(r"<str:(\w+)>", r"{\1}", str(pattern.pattern)), view


def test_every_address_is_listed_with_its_permissions() -> None:
    there = {(method, path): needed for path, view in views() for method, needed in view.required_permissions.items()}
    assert ROWS.keys() == there.keys()
    for call, needed in there.items():
        shown = ROWS[call].rpartition(" | ")[2]
        assert shown == ", ".join(f"`{permission}`" for permission in needed), call


def test_every_filter_is_listed() -> None:
    for path, view in views():
        for name in view.filterset_class.base_filters if view.filterset_class else ():
            assert f"`{name}`" in ROWS["GET", path], (path, name)


def test_every_status_of_a_refusal_is_listed() -> None:
    section = PAGE.partition("| status | when |")[2]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.FleetError)]
    listed = {status for statuses in re.findall(r"^\| ([0-9, ]+) \|", section, re.M) for status in statuses.split(", ")}
    assert {str(kind.status) for kind in kinds} <= listed
