"""Pages of a list."""

from __future__ import annotations

from typing import Any

from rest_framework.pagination import PageNumberPagination

_LINK = {"type": ["string", "null"], "format": "uri"}


class Pages(PageNumberPagination):
    """``?page=2&pageSize=100``; at most 500 a page."""

    page_size_query_param = "pageSize"
    max_page_size = 500

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """In OpenAPI 3.1's words; DRF's own are those of 3.0, where ``null`` was said otherwise."""
        return {
            "type": "object",
            "required": ["count", "next", "previous", "results"],
            "properties": {
                "count": {"type": "integer", "description": "Of all pages."},
                "next": {**_LINK, "description": "Address of the next page."},
                "previous": {**_LINK, "description": "Address of the page before."},
                "results": schema,
            },
        }
