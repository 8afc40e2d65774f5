"""Pages whose parts are read anew while somebody looks (``fleet/live.js``)."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from fleet.core.adminkit.pages import ServiceAdmin


class LiveViews(ServiceAdmin):
    """``live/`` beside an object's page: its changing parts alone. The page finds the address as ``live_url``."""

    live_template = ""

    def changing(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What the changing parts show; it is on the whole page too."""
        return {}

    def get_urls(self) -> list[URLPattern]:
        name = self.view_name("live")
        return [path("<path:object_id>/live/", self.admin_site.admin_view(self.live), name=name), *super().get_urls()]

    def detail_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        return {**self.changing(request, obj), "live_url": self.link("live", obj.pk)}

    def live(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The changing parts alone."""
        obj = self.found(request, object_id)
        return TemplateResponse(request, self.live_template, self.changing(request, obj))
