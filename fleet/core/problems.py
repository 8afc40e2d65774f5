"""Problem documents (RFC 9457): the one form in which REST says no (API-1)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from fleet.core.errors import Busy, FleetError, Invalid

CONTENT_TYPE = "application/problem+json"

log = logging.getLogger(__name__)


def document(
    status: int, detail: str, *, title: str = "", errors: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """The members of a problem document; ``errors`` are pairs of path and message."""
    body: dict[str, Any] = {"type": "about:blank", "title": title or HTTPStatus(status).phrase, "status": status}
    body["detail"] = detail
    if errors:
        body["errors"] = errors
    return body


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's hook: every refusal becomes a problem document; what is a bug stays an exception."""
    found = _explain(error)
    if found is None:
        return None
    status, body, headers = found
    set_rollback()
    return Response(body, status=status, headers=headers, content_type=CONTENT_TYPE)


def _explain(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]] | None:
    if isinstance(error, OperationalError | InterfaceError):
        log.error("the database does not answer", exc_info=error)
        error = Busy("the control plane's database does not answer at this moment; try again later")
    if isinstance(error, FleetError):
        errors = [{"path": fault.path, "message": fault.message} for fault in error.faults]
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Busy) else {}
        return error.status, document(error.status, str(error), title=error.title, errors=errors), headers
    if isinstance(error, Http404):
        return 404, document(404, str(error) or "There is no such object."), {}
    if isinstance(error, PermissionDenied):
        return 403, document(403, str(error) or "You may not do this."), {}
    if isinstance(error, DjangoValidationError):
        return 422, document(422, "; ".join(error.messages), title="Invalid"), {}
    if isinstance(error, exceptions.APIException):
        return _explain_drf(error)
    return None


def _explain_drf(error: exceptions.APIException) -> tuple[int, dict[str, Any], dict[str, str]]:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait))
    status = error.status_code
    if isinstance(error, exceptions.ValidationError):
        errors = list(_flatten(error.detail))
        detail = "; ".join(f"{each['path']}: {each['message']}" if each["path"] else each["message"] for each in errors)
        # As our own Invalid: 400 is for what can't be read at all.
        return Invalid.status, document(Invalid.status, detail, title=Invalid.title, errors=errors), headers
    return status, document(status, str(error.detail)), headers


def _flatten(detail: Any, path: str = "") -> Iterator[dict[str, str]]:
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            own = "" if name == "non_field_errors" else str(name)
            yield from _flatten(inner, f"{path}.{own}" if path and own else path or own)
    elif isinstance(detail, list):
        for inner in detail:
            yield from _flatten(inner, path)
    else:
        yield {"path": path, "message": str(detail)}
