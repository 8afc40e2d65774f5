"""The control plane as a device sees it, for tests: HTTP in, HTTP out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.test import Client

from devices.models import Device, DeviceGroup
from devices.services import token_create

START = datetime(2026, 12, 1, 14, 0, tzinfo=UTC)
AGENT = "/api/agent/v1"


class Door:
    """Its clock stands still until told (:meth:`later`)."""

    def __init__(self) -> None:
        self.now = START
        self.client = Client()

    def later(self, **amount: float) -> None:
        self.now += timedelta(**amount)

    def token(self, name: str = "shop", *, uses: int = 10, groups: tuple[str, ...] = (), **labels: str) -> str:
        """The plain text of a new enrolment token that is good for a day."""
        rows = [DeviceGroup.objects.get_or_create(name=group)[0] for group in groups]
        until = self.now + timedelta(days=1)
        return token_create(name=name, expires_at=until, use_limit=uses, labels=labels, groups=rows, actor=None)[1]

    def enrol(self, device: str, token: str, credential: str = "") -> HttpResponse:
        return self.post("/enroll", {"device": device, "token": token, "credential": credential})

    def enrolled(self, name: str) -> str:
        """A new device's credential."""
        reply = self.enrol(name, self.token(f"for-{name}"))
        assert reply.status_code == 201, reply.content
        return str(reply.json()["credential"])

    def device(self, name: str) -> Device:
        return Device.objects.get(name=name)

    def get(self, path: str, credential: str = "", **headers: str) -> HttpResponse:
        return self.client.get(AGENT + path, headers=_authorised(credential) | headers)

    def post(self, path: str, body: Any, credential: str = "") -> HttpResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(AGENT + path, data, content_type="application/json", headers=_authorised(credential))

    def report(self, credential: str, sequence: int, **parts: Any) -> HttpResponse:
        facts = parts.pop("facts", {})
        return self.post("/report", {"sequence": sequence, "facts": facts, **parts}, credential)


def _authorised(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"} if credential else {}
