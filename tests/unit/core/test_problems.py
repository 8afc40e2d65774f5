"""Every refusal as a problem document (RFC 9457); a bug stays a bug."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, serializers

from agent.wire.rules import Fault
from fleet.core import problems
from fleet.core.errors import Conflict, Denied, FleetError, Invalid, NotFound, TooLarge, Unauthorised

pytestmark = pytest.mark.clause("API-1")


def told(error: Exception) -> dict[str, Any]:
    response = problems.exception_handler(error, {})
    assert response is not None
    assert response.content_type == "application/problem+json"
    assert response.data["status"] == response.status_code
    found: dict[str, Any] = response.data
    return found


@pytest.mark.parametrize(
    ("kind", "status"),
    [(Invalid, 422), (Unauthorised, 401), (Denied, 403), (NotFound, 404), (Conflict, 409), (TooLarge, 413)],
)
def test_a_services_refusal_keeps_its_words(kind: type[FleetError], status: int) -> None:
    document = told(kind("group lab is unknown; create it first"))
    assert (document["status"], document["title"]) == (status, kind.title)
    assert document["detail"] == "group lab is unknown; create it first"


def test_all_faults_are_listed_with_their_paths() -> None:
    faults = [Fault("spec.a", "is missing"), Fault("spec.b", "unknown field")]
    assert told(Invalid("spec.a: is missing; spec.b: unknown field", faults))["errors"] == [
        {"path": "spec.a", "message": "is missing"},
        {"path": "spec.b", "message": "unknown field"},
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Http404(), 404),
        (PermissionDenied(), 403),
        (ValidationError("too short"), 422),
        (exceptions.NotAuthenticated(), 401),
        (exceptions.MethodNotAllowed("PUT"), 405),
        (exceptions.UnsupportedMediaType("text/plain"), 415),
    ],
)
def test_refusals_of_the_frameworks_have_the_same_form(error: Exception, status: int) -> None:
    document = told(error)
    assert document["status"] == status
    assert document["detail"]


def test_whoever_has_to_wait_is_told_how_long() -> None:
    response = problems.exception_handler(exceptions.Throttled(wait=11.2), {})
    assert response is not None
    assert response.headers["Retry-After"] == "12"


@pytest.mark.parametrize("error", [OperationalError("connection to 10.0.0.5 refused"), InterfaceError("closed")])
def test_a_database_that_is_away_is_a_matter_of_time_and_its_address_nobody_elses(error: Exception) -> None:
    response = problems.exception_handler(error, {})
    assert response is not None
    assert response.headers["Retry-After"] == "30"
    document = told(error)
    assert (document["status"], document["title"]) == (503, "Busy")
    assert "10.0.0.5" not in str(document)


class Inner(serializers.Serializer[Any]):
    size = serializers.IntegerField()


class Outer(serializers.Serializer[Any]):
    name = serializers.CharField()
    inner = Inner()
    numbers = serializers.ListField(child=serializers.IntegerField())


def test_faults_of_a_form_have_the_path_of_their_field() -> None:
    form = Outer(data={"inner": {"size": "x"}, "numbers": [1, "y"]})
    assert not form.is_valid()
    document = told(exceptions.ValidationError(form.errors))
    assert {each["path"] for each in document["errors"]} == {"name", "inner.size", "numbers.1"}
    assert "inner.size: A valid integer is required." in document["detail"]


def test_a_bug_is_not_dressed_up_as_a_refusal() -> None:
    assert problems.exception_handler(ZeroDivisionError(), {}) is None
