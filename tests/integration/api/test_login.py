"""A password for a token, and the token's end."""

from __future__ import annotations

import base64

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from fleet.core.login import LoginThrottle
from tests.integration.api.rest import Rest, problem

pytestmark = [pytest.mark.clause("API-1", "ADM-2"), pytest.mark.django_db]
PASSWORD = "correct horse"
ATTEMPTS = int(LoginThrottle.rate.partition("/")[0])


@pytest.fixture(autouse=True)
def user(db: None) -> User:
    return User.objects.create_superuser("ada", password=PASSWORD)


def log_in(password: str = PASSWORD, **headers: str) -> HttpResponse:
    basic = base64.b64encode(f"ada:{password}".encode()).decode()
    return Client().post("/api/v1/auth/login/", headers={"Authorization": f"Basic {basic}", **headers})


def test_a_password_buys_a_token() -> None:
    answer = log_in().json()
    assert set(answer) == {"expiry", "token"}
    assert Rest(answer["token"]).names("devices/") == []


def test_a_token_ends_with_logout() -> None:
    rest = Rest(log_in().json()["token"])
    assert rest.call("POST", "auth/logout/").status_code == 204
    problem(rest.call("GET", "devices/"), 401)


def test_a_wrong_password_buys_nothing() -> None:
    problem(log_in("wrong"), 401)


def test_a_token_buys_no_other_token() -> None:
    problem(Rest(log_in().json()["token"]).call("POST", "auth/login/"), 401)


def test_guessing_is_slowed_down_whatever_address_is_claimed() -> None:
    for attempt in range(ATTEMPTS):
        assert log_in("wrong", **{"X-Forwarded-For": f"10.0.0.{attempt}"}).status_code == 401
    answer = log_in(PASSWORD, **{"X-Forwarded-For": "10.0.1.1"})
    problem(answer, 429)
    assert 0 < int(answer.headers["Retry-After"]) <= 61


def test_there_are_not_endless_tokens(user: User, settings: pytest.FixtureRequest) -> None:
    for _ in range(20):
        Rest.of(user)
    assert "allowed: 20" in problem(log_in(), 403)["detail"]
