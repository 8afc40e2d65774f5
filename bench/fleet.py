"""Rows for benchmarks, made by the product's own services where their number allows it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from agent.wire.messages import EnrolRequest
from devices.models import Connectivity, Credential, DesiredHead, Device, DeviceGroup, Heartbeat
from devices.services import device_enrol, token_create
from devices.services.tokens import hash_of
from fleet.core import clock, door
from rollouts import services
from rollouts.models import Deployment

GROUP = "lab"


def token(name: str, *, labels: Mapping[str, str], uses: int = 1) -> str:
    """The plain text of an enrolment token into the group."""
    group, _ = DeviceGroup.objects.get_or_create(name=GROUP)
    expires_at = clock.now() + timedelta(hours=1)
    return token_create(name=name, expires_at=expires_at, use_limit=uses, labels=labels, groups=[group], actor=None)[1]


def enrolled(count: int) -> dict[str, str]:
    """Credentials of devices that went through enrolment, by device id."""
    plain = token(f"bench-{count}-{clock.now().timestamp()}", labels={"role": "bench"}, uses=count)
    names = [f"bench-{number}" for number in range(count)]
    return {name: device_enrol(request=EnrolRequest(device=name, token=plain)).credential for name in names}


def in_bulk(count: int) -> Sequence[Device]:
    """Devices without a credential, online, in the group: for decisions about many."""
    return named([f"bulk-{n}" for n in range(count)], role="bulk")


def named(names: Sequence[str], *, role: str) -> Sequence[Device]:
    """The same under names and a role of one's own."""
    now = clock.now()
    rows = Device.objects.bulk_create(
        [Device(name=name, enrolled_at=now, labels={"device-id": name, "role": role}) for name in names]
    )
    Heartbeat.objects.bulk_create(
        [Heartbeat(device=row, last_seen=now, connectivity=Connectivity.ONLINE, connectivity_since=now) for row in rows]
    )
    DesiredHead.objects.bulk_create([DesiredHead(device=row) for row in rows])
    group, _ = DeviceGroup.objects.get_or_create(name=GROUP)
    group.devices.add(*rows)
    return rows


def credentials(rows: Sequence[Device]) -> list[str]:
    """A credential for each of these, without enrolment: for many devices that call."""
    plain = [secrets.token_urlsafe(32) for _ in rows]
    Credential.objects.bulk_create(
        Credential(device=row, token_hash=hash_of(text), created_at=clock.now())
        for row, text in zip(rows, plain, strict=True)
    )
    return plain


def applied(
    name: str, role: str, image: str = "registry.example.com/app:1.0", *, secret: tuple[str, str] | None = None
) -> Deployment:
    """A deployment of one service for all devices of a role; ``secret`` is name and key of one that it needs."""
    service: dict[str, Any] = {"name": name, "image": image}
    if secret is not None:
        service["secret_env"] = [{"name": "SECRET", "secret": {"name": secret[0], "key": secret[1]}}]
    manifest = {
        "apiVersion": "fleet.nationtech.io/v1alpha1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "allowedGroups": [GROUP],
            "targetSelector": {"matchLabels": {"role": role}},
            "score": {"type": "PodmanV0", "data": {"services": [service]}},
        },
    }
    (admitted,) = door.admit(json.dumps(manifest))
    deployment = services.deployment_apply(manifest=admitted, actor=None).deployment
    if deployment is None:
        raise RuntimeError(f"{name} was not applied")
    return deployment
