"""Pages of a list."""

from __future__ import annotations

from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    """``?page=2&pageSize=100``; at most 500 a page."""

    page_size_query_param = "pageSize"
    max_page_size = 500
