"""A password is changed for a token here, and for nothing else (knox)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from knox.models import get_token_model
from knox.views import LoginView, LogoutView
from rest_framework import serializers
from rest_framework.authentication import BasicAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle

from fleet.core import clock
from fleet.core.errors import Denied
from fleet.core.rest import NO_STORE


class LoginThrottle(SimpleRateThrottle):
    """Few attempts a minute from one address: passwords are not to be guessed here."""

    rate = "20/min"

    def get_cache_key(self, request: Request, view: Any) -> str:
        # Not DRF's own get_ident: it believes a header that the client writes.
        return f"throttle-login-{request.META.get('REMOTE_ADDR', '')}"


class Login(LoginView):
    """Basic authentication in, a token out; the token is shown once."""

    authentication_classes = [BasicAuthentication]
    permission_classes = [IsAuthenticated]
    throttle_classes = [LoginThrottle]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Before the password is looked at: DRF throttles last, when a wrong one was refused already.
        self.check_throttles(request)
        super().initial(request, *args, **kwargs)

    def check_throttles(self, request: Request) -> None:
        if not getattr(self, "_counted", False):
            self._counted = True
            super().check_throttles(request)

    @extend_schema(
        operation_id="login",
        request=None,
        auth=[{"basicAuth": []}],  # type: ignore[list-item]  # the stubs know names alone
        responses=inline_serializer(
            "Token", {"token": serializers.CharField(), "expiry": serializers.DateTimeField(allow_null=True)}
        ),
    )
    def post(self, request: Request, *_: Any, **__: Any) -> Response:
        limit = self.get_token_limit_per_user()
        valid = get_token_model().objects.filter(user=request.user, expiry__gt=clock.now()).count()
        if limit is not None and valid >= limit:
            raise Denied(
                f"{request.user.get_username()} has {valid} tokens that are valid; allowed: {limit}; log out where a "
                "token is no longer needed, or wait until one expires"
            )
        answer: Response = super().post(request)
        answer["Cache-Control"] = NO_STORE["Cache-Control"]
        return answer


class Logout(LogoutView):
    """Ends the token that the request carries."""

    @extend_schema(operation_id="logout", request=None, responses={204: None})
    def post(self, request: Request, *_: Any, **__: Any) -> Response:
        answer: Response = super().post(request)
        return answer
