"""Tables of many rows on an object's own page: tabs above them, a search, and pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest

PER_PAGE = 50
#: By the word in the address: what a tab is called, and which rows it keeps. The empty word is the first tab.
Tabs = Mapping[str, tuple[str, Q]]


def paged(request: HttpRequest, rows: QuerySet[Any], plain: QuerySet[Any], tabs: Tabs) -> dict[str, Any]:
    """The page of targets that the address asks for (``state``, ``find``, ``page``), and what its controls need.

    ``plain`` are the same rows without the joins that only showing needs: those are what is counted.
    """
    tab, search = request.GET.get("state", ""), request.GET.get("find", "").replace("\x00", "").strip()
    label, wanted = tabs.get(tab, tabs[""])
    if search:
        wanted &= Q(device_name__icontains=search)
    pages: Paginator[Any] = Paginator(cast("Any", _Counted(rows, plain, wanted)), PER_PAGE)
    return {
        "tabs": [{"name": name, "label": text, "current": text == label} for name, (text, _) in tabs.items()],
        "tab": tab if tab in tabs else "",
        "find": search,
        "page": pages.get_page(request.GET.get("page")),
    }


class _Counted:
    """Rows with everything that is shown, counted without it."""

    ordered = True

    def __init__(self, rows: QuerySet[Any], plain: QuerySet[Any], wanted: Q) -> None:
        self._rows, self._plain, self._wanted = rows, plain, wanted

    def count(self) -> int:
        return self._plain.order_by().filter(self._wanted).count()

    def __getitem__(self, cut: slice) -> QuerySet[Any]:
        return self._rows.filter(self._wanted)[cut]
