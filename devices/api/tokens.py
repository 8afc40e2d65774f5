"""Enrolment tokens."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices import services
from devices.api.forms import TokenCreated, TokenNew, TokenObject
from devices.api.groups import group_named
from devices.models import EnrolmentToken
from fleet.core import clock
from fleet.core.errors import NotFound
from fleet.core.rest import NO_STORE, ApiView


class TokenFilter(filters.FilterSet):
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Part of the name.")


def tokens() -> QuerySet[EnrolmentToken]:
    """Tokens, newest first: two queries whatever their number."""
    return EnrolmentToken.objects.select_related("created_by").prefetch_related("groups").order_by("-created_at")


def token_named(name: str) -> EnrolmentToken:
    """Raises:
    NotFound: there is no such token.
    """
    token = tokens().filter(name=name).first()
    if token is None:
        raise NotFound(f"there is no enrolment token {name[:80]!r}; fleetctl token list lists them")
    return token


class TokenList(ApiView):
    serializer_class = TokenObject
    filterset_class = TokenFilter
    queryset = EnrolmentToken.objects.none()
    required_permissions = {"GET": ["devices.view_enrolmenttoken"], "POST": ["devices.add_enrolmenttoken"]}

    @extend_schema(operation_id="token_list", responses=TokenObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Enrolment tokens, newest first, without their secrets."""
        return self.page_of(tokens())

    @extend_schema(operation_id="token_create", request=TokenNew, responses={201: TokenCreated})
    def post(self, request: Request, **_: str) -> Response:
        """A new token; its secret is in this answer and never again."""
        wanted = self.checked(TokenNew)
        token, plain = services.token_create(
            name=wanted["name"],
            expires_at=clock.now() + timedelta(seconds=wanted["expiresInSeconds"]),
            use_limit=wanted["useLimit"],
            labels=wanted["labels"],
            groups=[group_named(name) for name in wanted["groups"]],
            actor=self.actor,
        )
        return Response(TokenCreated(token, context={"plain": plain}).data, status=201, headers=NO_STORE)


class TokenOne(ApiView):
    serializer_class = TokenObject
    queryset = EnrolmentToken.objects.none()
    filter_backends = ()
    required_permissions = {"GET": ["devices.view_enrolmenttoken"]}

    @extend_schema(operation_id="token_get")
    def get(self, request: Request, **_: str) -> Response:
        """One token, without its secret."""
        return Response(TokenObject(token_named(self.kwargs["name"])).data)


class TokenRevoke(ApiView):
    queryset = EnrolmentToken.objects.none()
    required_permissions = {"POST": ["devices.change_enrolmenttoken"]}

    @extend_schema(operation_id="token_revoke", request=None, responses=TokenObject)
    def post(self, request: Request, **_: str) -> Response:
        """Let nobody in by it any more."""
        services.token_revoke(token=token_named(self.kwargs["name"]), actor=self.actor)
        return Response(TokenObject(token_named(self.kwargs["name"])).data)
