"""The devices' own entrance: first among the middleware, because none of the others is meant for them.

Sessions, CSRF and messages serve people with browsers. A poll that went through them would spend most of its time
there.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from devices import agent_api
from devices.agent_views import over_plain_http, refuse_plain_http

PREFIX = "/api/agent/v1/"
DOCUMENTS = PREFIX + "documents/"
_VIEWS: dict[str, Callable[..., HttpResponse]] = {
    PREFIX + "desired": agent_api.desired,
    PREFIX + "report": agent_api.report,
    PREFIX + "enroll": agent_api.enroll,
}


class AgentEntrance:
    """Answers devices at once and passes everything else on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        if not path.startswith(PREFIX):
            return self.get_response(request)
        response = self._answer(request, path)
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def _answer(self, request: HttpRequest, path: str) -> HttpResponse:
        if over_plain_http(request):
            return refuse_plain_http()
        if view := _VIEWS.get(path):
            return view(request)
        if path.startswith(DOCUMENTS):
            return agent_api.desired_document(request, hash=path.removeprefix(DOCUMENTS))
        return self.get_response(request)
