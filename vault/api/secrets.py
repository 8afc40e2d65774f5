"""Secrets of a namespace: named, replaced, changed, deleted, and never shown."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.core.rest import ApiView
from vault import selectors, services
from vault.api.forms import SecretChange, SecretListed, SecretNew, SecretObject
from vault.models import Secret
from vault.selectors import secret_named


class SecretFilter(filters.FilterSet):
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Part of the name.")


class SecretList(ApiView):
    serializer_class = SecretListed
    filterset_class = SecretFilter
    queryset = Secret.objects.none()
    required_permissions = {"GET": ["vault.view_secret"]}

    @extend_schema(operation_id="secret_list", responses=SecretListed(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Secrets of a namespace by name, without their values."""
        return self.page_of(selectors.secrets_overview().filter(namespace=self.kwargs["namespace"]))


class SecretOne(ApiView):
    serializer_class = SecretObject
    queryset = Secret.objects.none()
    filter_backends = ()
    required_permissions = {
        "GET": ["vault.view_secret"],
        "PUT": ["vault.add_secret", "vault.change_secret"],
        "PATCH": ["vault.add_secret", "vault.change_secret"],
        "DELETE": ["vault.delete_secret"],
    }

    @method_decorator(sensitive_post_parameters())
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)

    @extend_schema(operation_id="secret_get")
    def get(self, request: Request, **_: str) -> Response:
        """One secret, without its values."""
        return Response(SecretObject(secret_named(**self._place)).data)

    @extend_schema(operation_id="secret_put", request=SecretNew, responses=SecretObject)
    @sensitive_variables()
    def put(self, request: Request, **_: str) -> Response:
        """Make it be exactly this; a key that is not named is gone."""
        return Response(
            SecretObject(services.secret_put(**self._place, **self.checked(SecretNew), actor=self.actor)).data
        )

    @extend_schema(operation_id="secret_merge", request=SecretChange, responses=SecretObject)
    @sensitive_variables()
    def patch(self, request: Request, **_: str) -> Response:
        """Set some keys and keep the others; make it if there is none."""
        merged = services.secret_merge(**self._place, **self.checked(SecretChange), actor=self.actor)
        return Response(SecretObject(merged).data)

    @extend_schema(operation_id="secret_delete", responses={204: None})
    def delete(self, request: Request, **_: str) -> Response:
        """Delete it; devices that have its values keep working from their own cache."""
        services.secret_delete(**self._place, actor=self.actor)
        return Response(status=204)

    @property
    def _place(self) -> dict[str, str]:
        return {"namespace": self.kwargs["namespace"], "name": self.kwargs["name"]}
