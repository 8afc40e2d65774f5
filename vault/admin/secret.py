"""Secrets: which there are, with which keys, and who needs them. Values go in and never come out."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from unfold.contrib.filters.admin import AllValuesCheckboxFilter
from unfold.decorators import display

from fleet.core.adminkit import show
from fleet.core.adminkit.pages import Operation, ServiceAdmin, sentences
from fleet.core.adminkit.records import records_of
from fleet.core.errors import Conflict, FleetError
from vault import services, uses
from vault.admin.forms import KeyChoiceForm, KeyForm, NewLoginForm, NewSecretForm, RegistryForm
from vault.models import Secret
from vault.selectors import secrets_overview

CHANGE = "vault.change_secret"
LATER = "Devices read it when a revision is new or a container has to be made; what runs keeps what it has."


def _merge(secret: Secret, user: Any, values: dict[str, str | None], registry: str | None = None) -> None:
    services.secret_merge(namespace=secret.namespace, name=secret.name, values=values, registry=registry, actor=user)


@sensitive_variables()
def _set(secret: Secret, user: Any, cleaned: dict[str, Any]) -> str:
    _merge(secret, user, {cleaned["key"]: cleaned["value"]})
    return f"The value of {cleaned['key']} was set."


def _remove(secret: Secret, user: Any, cleaned: dict[str, Any]) -> str:
    _merge(secret, user, {cleaned["key"]: None})
    return f"The key {cleaned['key']} is gone."


def _registry(secret: Secret, user: Any, cleaned: dict[str, Any]) -> str:
    _merge(secret, user, {}, cleaned["registry"])
    return f"{secret} is {'the login for ' + cleaned['registry'] if cleaned['registry'] else 'no login any more'}."


def _delete(secret: Secret, user: Any, _: dict[str, Any]) -> str:
    services.secret_delete(namespace=secret.namespace, name=secret.name, actor=user)
    return f"The secret {secret} is gone."


def _needed(secret: Secret) -> list[str]:
    """What taking it away means, by who needs it."""
    needing = uses.of(secret)
    if not needing:
        return ["No deployment needs it."]
    return [
        f"It is needed by {', '.join(needing)}.",
        "What runs keeps running, and devices keep the values that they have; a device that has not read them yet "
        "can't start a container with them.",
    ]


@admin.register(Secret)
class SecretAdmin(ServiceAdmin):
    operations = (
        Operation(
            name="set",
            label="Set a value",
            icon="key",
            permission=CHANGE,
            question="Set a value of {}",
            run=_set,
            consequences=lambda _: [LATER],
            form=KeyForm,
        ),
        Operation(
            name="registry",
            label="Registry",
            icon="inventory_2",
            permission=CHANGE,
            question="Is {} the login for an image registry?",
            run=_registry,
            consequences=lambda _: ["It needs the keys username and password. Its deployments' devices pull with it."],
            form=RegistryForm,
        ),
        Operation(
            name="remove-key",
            label="Remove a key",
            icon="key_off",
            permission=CHANGE,
            question="Remove a key of {}",
            run=_remove,
            consequences=_needed,
            offered=lambda secret: len(secret.entries.all()) > 1,
            form=KeyChoiceForm,
            danger=True,
        ),
        Operation(
            name="remove",
            label="Delete",
            icon="delete",
            permission="vault.delete_secret",
            question="Delete the secret {}?",
            run=_delete,
            consequences=_needed,
            danger=True,
        ),
    )
    detail_template = "fleet/secret.html"
    list_display = ("title", "key_names", "login", "updated")
    list_display_links = ("title",)
    list_filter = (("namespace", AllValuesCheckboxFilter),)
    search_fields = ("namespace", "name", "registry", "entries__key")
    search_help_text = "Search by name, key or registry"
    empty_title = "No secret yet"
    empty_text = "A manifest names secrets in secret_env; devices get the values, and no page ever shows them."
    add_label = "Create a secret"

    def get_queryset(self, request: HttpRequest) -> Any:
        return secrets_overview().order_by(*(self.get_ordering(request) or ("namespace", "name")))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perms(["vault.add_secret", CHANGE])

    @method_decorator(sensitive_post_parameters())
    def operate(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        return super().operate(request, object_id, name)

    @method_decorator(sensitive_post_parameters())
    @sensitive_variables()
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        kind = NewLoginForm if "login" in request.GET else NewSecretForm
        form = kind(data=request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._form(request, form)
        try:
            secret = self._created(request, form)
        except FleetError as error:
            return self._form(request, form, error)
        messages.success(request, f"The secret {secret} is made.")
        return HttpResponseRedirect(self.link("change", secret.pk))

    @sensitive_variables()
    def _created(self, request: HttpRequest, form: NewSecretForm | NewLoginForm) -> Secret:
        namespace, name = form.cleaned_data["namespace"], form.cleaned_data["name"]
        if Secret.objects.filter(namespace=namespace, name=name).exists():
            raise Conflict(f"there is a secret {namespace}/{name} already; open it to set its values")
        return services.secret_put(
            namespace=namespace, name=name, values=form.values, registry=form.registry, actor=request.user
        )

    def _form(self, request: HttpRequest, form: forms.Form, error: FleetError | None = None) -> HttpResponse:
        context = self.page_context(
            request,
            form=form,
            title="Create a secret",
            is_login=isinstance(form, NewLoginForm),
            cancel=self.link("changelist"),
            errors=sentences(error) if error else [],
        )
        status = error.status if error else HTTPStatus.OK
        return TemplateResponse(request, "fleet/secret_new.html", context, status=status)

    def detail_context(self, request: HttpRequest, obj: Secret) -> dict[str, Any]:
        return {
            "secret": obj,
            "keys": self.key_names(obj),
            "used_by": uses.of(obj) if request.user.has_perm("rollouts.view_deployment") else [],
            **records_of(request, "Secret", str(obj)),
        }

    @display(description="Secret", ordering="name")
    def title(self, secret: Secret) -> str:
        return str(secret)

    @display(description="Keys")
    def key_names(self, secret: Secret) -> SafeString:
        return show.names(entry.key for entry in secret.entries.all())

    @display(description="Login for registry", ordering="registry")
    def login(self, secret: Secret) -> SafeString:
        return format_html('<span class="hf-mono">{}</span>', secret.registry) if secret.registry else show.DASH

    @display(description="Updated", ordering="updated_at")
    def updated(self, secret: Secret) -> SafeString:
        return format_html(
            '<span class="hf-small">{}<br>by {}</span>', show.moment(secret.updated_at), secret.updated_by
        )
