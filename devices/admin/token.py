"""Enrolment tokens: made with a limit and an end, shown once, revocable."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from devices import services
from devices.admin.forms import TokenForm
from devices.models import EnrolmentToken
from fleet.core import clock
from fleet.core.adminkit import show
from fleet.core.adminkit.pages import Operation, ServiceAdmin, sentences
from fleet.core.adminkit.records import records_of
from fleet.core.adminkit.show import Look
from fleet.core.errors import FleetError

USABLE, REVOKED = "usable", "revoked"
LOOKS = {
    USABLE: Look("good", "key"),
    "used up": Look("mute", "done_all"),
    "expired": Look("warn", "timer_off"),
    REVOKED: Look("bad", "block"),
}


def state_of(token: EnrolmentToken) -> str:
    """Whether the token still lets devices in, and if not, why."""
    if token.revoked_at is not None:
        return REVOKED
    if token.uses >= token.use_limit:
        return "used up"
    return "expired" if token.expires_at <= clock.now() else USABLE


def _revoke(token: EnrolmentToken, user: Any, _: dict[str, Any]) -> str:
    services.token_revoke(token=token, actor=user)
    return f"The token {token.name} lets nobody in any more."


@admin.register(EnrolmentToken)
class EnrolmentTokenAdmin(ServiceAdmin):
    operations = (
        Operation(
            name="revoke",
            label="Revoke",
            icon="block",
            permission="devices.change_enrolmenttoken",
            question="Revoke the enrolment token {}?",
            run=_revoke,
            consequences=lambda token: [
                "No further device can enrol with it.",
                f"The {show.plural(token.uses, 'device')} that it let in keep their own credentials.",
            ],
            offered=lambda token: state_of(token) != REVOKED,
            danger=True,
        ),
    )
    detail_template = "fleet/token.html"
    list_display = ("name", "state", "used", "expires", "label_chips", "group_names", "made")
    search_fields = ("name", "created_by__username")
    search_help_text = "Search by name or who made it"
    list_select_related = ("created_by",)
    empty_title = "No enrolment token yet"
    empty_text = "A token lets devices in: a number of them, until a day. It is shown once, with the command to run."
    add_label = "Create an enrolment token"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("groups")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("devices.add_enrolmenttoken")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._form(request, form)
        try:
            return self._created(request, form.cleaned_data)
        except FleetError as error:
            return self._form(request, form, error)

    def _form(self, request: HttpRequest, form: forms.Form, error: FleetError | None = None) -> HttpResponse:
        context = self.page_context(
            request,
            form=form,
            title="Create an enrolment token",
            submit="Create",
            cancel=self.link("changelist"),
            errors=sentences(error) if error else [],
        )
        return TemplateResponse(request, "fleet/create.html", context, status=error.status if error else HTTPStatus.OK)

    def _created(self, request: HttpRequest, cleaned: dict[str, Any]) -> HttpResponse:
        """The only page that ever has the token; the admin lets no page be cached, and no session keeps it."""
        token, secret = services.token_create(
            name=cleaned["name"],
            expires_at=cleaned["expires_at"],
            use_limit=cleaned["use_limit"],
            labels=cleaned["labels"],
            groups=cleaned["groups"],
            actor=request.user,
        )
        server = request.build_absolute_uri("/").rstrip("/")
        context = self.page_context(request, token, token=token, secret=secret, server=server)
        return TemplateResponse(request, "fleet/token_created.html", context)

    def detail_context(self, request: HttpRequest, obj: EnrolmentToken) -> dict[str, Any]:
        return {
            "token": obj,
            "state": self.state(obj),
            "used": self.used(obj),
            **records_of(request, "EnrolmentToken", obj.name),
        }

    @display(description="State")
    def state(self, token: EnrolmentToken) -> SafeString:
        state = state_of(token)
        return show.badge(state, LOOKS[state])

    @display(description="Used", ordering="uses")
    def used(self, token: EnrolmentToken) -> SafeString:
        spent = [(token.uses, "info", "used")]
        words = f"{token.uses} of {token.use_limit}"
        return format_html(
            '<span class="hf-bar-cell">{}<span class="hf-small hf-mute">{}</span></span>',
            show.bar(spent, total=token.use_limit),
            words,
        )

    @display(description="Expires", ordering="expires_at")
    def expires(self, token: EnrolmentToken) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', show.moment(token.expires_at))

    @display(description="Gives labels")
    def label_chips(self, token: EnrolmentToken) -> SafeString:
        return show.chips(token.labels, limit=3)

    @display(description="Puts into groups")
    def group_names(self, token: EnrolmentToken) -> SafeString:
        return show.names(group.name for group in token.groups.all())

    @display(description="Made", ordering="created_at")
    def made(self, token: EnrolmentToken) -> SafeString:
        who = token.created_by.get_username() if token.created_by else "the system"
        return format_html('<span class="hf-small">{}<br>by {}</span>', show.moment(token.created_at), who)
