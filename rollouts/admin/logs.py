"""The end of a container's log: choose, ask, and see it as it arrives (AGT-16)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from fleet.core import clock
from fleet.core.adminkit.pages import ServiceAdmin, sentences
from fleet.core.errors import FleetError, NotFound
from rollouts import services
from rollouts.admin import looks
from rollouts.admin.forms import LogForm
from rollouts.models import Deployment, LogRequest, LogState
from rollouts.selectors.logs import log_request, log_sentence, log_sources

READ = "rollouts.read_logs"


class LogViews(ServiceAdmin):
    """The pages of logs, for the deployments' admin."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<path:object_id>/logs/<uuid:uid>/part/", wrap(self.log_live), name=self.view_name("log_live")),
            path("<path:object_id>/logs/<uuid:uid>/", wrap(self.log), name=self.view_name("log")),
            path("<path:object_id>/logs/", wrap(self.logs), name=self.view_name("logs")),
            *super().get_urls(),
        ]

    def logs(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Which log is wanted (GET), then ask for it (POST)."""
        deployment = self._readable(request, object_id)
        known = {"sources": log_sources(deployment), "device": request.GET.get("device", "")}
        if request.method != "POST":
            return self._page(request, deployment, LogForm(**known))
        form = LogForm(**known, data=request.POST)
        if not form.is_valid():
            return self._page(request, deployment, form)
        try:
            made = services.logs_request(deployment=deployment, actor=request.user, **form.cleaned_data)
        except FleetError as error:
            return self._page(request, deployment, form, error=error)
        return HttpResponseRedirect(self.link("log", deployment.pk, made.uid))

    def log(self, request: HttpRequest, object_id: str, uid: Any) -> HttpResponse:
        """What became of a request, with the form to ask again."""
        deployment = self._readable(request, object_id)
        asked = self._asked(deployment, uid)
        form = LogForm(sources=log_sources(deployment), device=asked.device.name, container=asked.container)
        return self._page(request, deployment, form, asked=asked)

    def log_live(self, request: HttpRequest, object_id: str, uid: Any) -> HttpResponse:
        """The changing part alone."""
        deployment = self._readable(request, object_id)
        return TemplateResponse(request, "fleet/log_parts.html", _shown(self._asked(deployment, uid)))

    def _readable(self, request: HttpRequest, object_id: str) -> Deployment:
        if not request.user.has_perm(READ):
            raise PermissionDenied
        deployment: Deployment = self.found(request, object_id)
        return deployment

    def _asked(self, deployment: Deployment, uid: Any) -> LogRequest:
        try:
            return log_request(deployment, str(uid))
        except NotFound as error:
            raise Http404(str(error)) from None

    def _page(
        self,
        request: HttpRequest,
        deployment: Deployment,
        form: LogForm,
        *,
        asked: LogRequest | None = None,
        error: FleetError | None = None,
    ) -> HttpResponse:
        context = self.page_context(
            request,
            deployment,
            form=form,
            ask_url=self.link("logs", deployment.pk),
            back=self.link("change", deployment.pk),
            errors=sentences(error) if error else [],
            live_url=self.link("log_live", deployment.pk, asked.uid) if asked else "",
            **_shown(asked),
        )
        status = error.status if error else HTTPStatus.OK
        return TemplateResponse(request, "fleet/logs.html", context, status=status)


def _shown(asked: LogRequest | None) -> dict[str, Any]:
    if asked is None:
        return {"asked": None}
    return {
        "asked": asked,
        "badge": looks.log_state(asked.state),
        "sentence": log_sentence(asked, clock.now()),
        "done": asked.state != LogState.WAITING,
    }
