"""What all views for devices share: methods, credentials, bodies with limits, refusals as problem documents.

Used by every app that answers devices; plain functions without DRF.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from agent.wire import canonical, messages
from devices.models import Credential
from devices.services.tokens import hash_of
from fleet.core.errors import Busy, FleetError, Invalid, TooLarge, Unauthorised
from fleet.core.problems import CONTENT_TYPE, document

log = logging.getLogger(__name__)
View = Callable[..., HttpResponse]
Body = TypeVar("Body", bound=messages.Message)

SCHEME = "Bearer "


def agent_view(method: str) -> Callable[[View], View]:
    """A view for one method whose refusals are problem documents."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        def guarded(request: HttpRequest, **arguments: str) -> HttpResponse:
            if request.method != method:
                response = problem(405, f"{request.method} is not known here; allowed: {method}")
                response["Allow"] = method
                return response
            try:
                return view(request, **arguments)
            except FleetError as error:
                return refusal(error)
            except (OperationalError, InterfaceError):
                log.exception("the database does not answer")
                return refusal(Busy("the control plane's database does not answer at this moment; try again later"))

        return guarded

    return decorate


def token_hash(request: HttpRequest) -> str:
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if not header.startswith(SCHEME):
        raise Unauthorised("no credential was sent; send Authorization: Bearer <credential>, or enrol first")
    return hash_of(header[len(SCHEME) :])


def device_of(request: HttpRequest) -> int:
    """The id of the device that asks, by one read.

    Raises:
        Unauthorised: when its credential is missing or unknown.
    """
    found = Credential.objects.filter(token_hash=token_hash(request)).values_list("device_id", flat=True).first()
    if found is None:
        raise unknown_credential()
    return found


def unknown_credential() -> Unauthorised:
    return Unauthorised(
        "this credential is unknown: the device was forgotten, reset or enrolled anew; "
        "enrol again with a token from an operator"
    )


def body_of(request: HttpRequest, type_: type[Body], limit: int) -> Body:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > limit:
        raise TooLarge(f"the body has {length[:20]} bytes; allowed: {limit}")
    try:
        return msgspec.json.decode(request.read(limit), type=type_)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"the body is no {type_.__name__}: {error}") from None
    except RecursionError:  # fields that we pass over are read to their depth all the same
        raise Invalid(f"the body is no {type_.__name__}: it is nested too deeply") from None


def json_answer(body: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(canonical.encode(body), status=status, content_type="application/json")


def refusal(error: FleetError) -> HttpResponse:
    """The problem document of an error that a service or a view raised."""
    response = problem(error.status, str(error), error.title)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="fleet"'
    if isinstance(error, Busy):
        response["Retry-After"] = str(error.retry_after)
    return response


def problem(status: int, detail: str, title: str = "") -> HttpResponse:
    """A problem document (RFC 9457)."""
    return HttpResponse(
        msgspec.json.encode(document(status, detail, title=title)), status=status, content_type=CONTENT_TYPE
    )


def over_plain_http(request: HttpRequest) -> bool:
    """Whether a credential would travel in clear although the settings ask for TLS."""
    return settings.SECURE_SSL_REDIRECT and not request.is_secure()


def refuse_plain_http() -> HttpResponse:
    """No redirect: a device that sent its credential in clear once would do so each time."""
    return problem(403, "this control plane takes devices by https only; change [server] url in agent.toml")
