"""The REST API as a program calls it."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client
from knox.models import AuthToken

from devices.models import DesiredItem, Device, DeviceGroup, EnrolmentToken
from fleet.core.models import AuditEntry
from rollouts.models import Deployment, Revision, Target
from vault.models import Secret, SecretEntry


class Rest:
    """Calls with somebody's token; without one for nobody."""

    def __init__(self, token: str = "") -> None:
        self._client = Client(raise_request_exception=True)
        self._headers = {"Authorization": f"Token {token}"} if token else {}

    @classmethod
    def of(cls, user: User) -> Rest:
        _, token = AuthToken.objects.create(user)
        return cls(token)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        chunked: bool = False,
        **query: Any,
    ) -> HttpResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        headers = {**self._headers, "Transfer-Encoding": "chunked"} if chunked else self._headers
        return self._client.generic(
            method, f"/api/v1/{path}", data, content_type=content_type, headers=headers, query_params=query
        )

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of an answer that must be 200."""
        answer = self.call("GET", path, **query)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def names(self, path: str, **query: Any) -> list[str]:
        """The names of a list's objects."""
        found = self.get(path, **query)["results"]
        return [each["metadata"]["name"] if "metadata" in each else each["name"] for each in found]

    def apply(self, text: str | bytes, **query: Any) -> HttpResponse:
        data = text.encode() if isinstance(text, str) else text
        return self.call("POST", "manifests/", data, content_type="application/yaml", **query)


def problem(answer: HttpResponse, status: int) -> dict[str, Any]:
    """The problem document of a refusal, which must have this status (API-1)."""
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    found: dict[str, Any] = json.loads(answer.content)
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    return found


KEPT: tuple[type[Model], ...] = (
    Deployment,
    Revision,
    Target,
    Device,
    DeviceGroup,
    EnrolmentToken,
    DesiredItem,
    Secret,
    SecretEntry,
    AuditEntry,
)


def database() -> dict[str, list[Any]]:
    """Everything that a refused request must leave as it was."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in KEPT}
