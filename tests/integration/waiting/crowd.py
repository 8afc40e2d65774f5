"""Devices that wait: real rows and credentials, made in bulk."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import uuid4

from django.db import transaction

from agent.wire.messages import DeploymentDocument
from devices.models import Connectivity, Credential, DesiredHead, Device, Heartbeat
from devices.services.mailbox import desired_put, document_put
from devices.services.tokens import hash_of
from tests.support.fake_control import score, service

FIRST = '"1.1"'


def enrolled(count: int) -> list[Device]:
    """So many devices whose credential is their name, all of version :data:`FIRST`."""
    now = datetime.now(UTC)
    rows = Device.objects.bulk_create(Device(name=f"edge-{number}", enrolled_at=now) for number in range(count))
    Heartbeat.objects.bulk_create(
        Heartbeat(device=row, connectivity=Connectivity.NEVER, connectivity_since=now) for row in rows
    )
    DesiredHead.objects.bulk_create(DesiredHead(device=row) for row in rows)
    Credential.objects.bulk_create(Credential(device=row, token_hash=hash_of(row.name), created_at=now) for row in rows)
    return rows


@transaction.atomic
def change(devices: Iterable[Device]) -> None:
    """These devices shall have something new, by the service that releases use."""
    uid = str(uuid4())
    document = DeploymentDocument(
        uid=uid, namespace="default", name="app", revision=1, score=score(service("app", "r.example/app:1"))
    )
    put = document_put(document)
    desired_put(kind="deployment", key=uid, document=put, device_ids=[device.pk for device in devices])
