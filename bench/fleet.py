"""Rows for benchmarks, made by the product's own services where their number allows it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import timedelta

from agent.wire.messages import EnrolRequest
from devices.models import Connectivity, Credential, DesiredHead, Device, DeviceGroup, Heartbeat
from devices.services import device_enrol, token_create
from devices.services.tokens import hash_of
from fleet.core import clock, door
from rollouts import services
from rollouts.models import Deployment

GROUP = "lab"


def enrolled(count: int) -> dict[str, str]:
    """Credentials of devices that went through enrolment, by device id."""
    group, _ = DeviceGroup.objects.get_or_create(name=GROUP)
    _token, plain = token_create(
        name=f"bench-{count}-{clock.now().timestamp()}",
        expires_at=clock.now() + timedelta(hours=1),
        use_limit=count,
        labels={"role": "bench"},
        groups=[group],
        actor=None,
    )
    names = [f"bench-{number}" for number in range(count)]
    return {name: device_enrol(request=EnrolRequest(device=name, token=plain)).credential for name in names}


def in_bulk(count: int) -> Sequence[Device]:
    """Devices without a credential, online, in the group: for decisions about many."""
    now = clock.now()
    rows = Device.objects.bulk_create(
        [
            Device(name=f"bulk-{n}", enrolled_at=now, labels={"device-id": f"bulk-{n}", "role": "bulk"})
            for n in range(count)
        ]
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


def applied(name: str, role: str, image: str = "registry.example.com/app:1.0") -> Deployment:
    """A deployment of one service for all devices of a role."""
    manifest = {
        "apiVersion": "fleet.nationtech.io/v1alpha1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "allowedGroups": [GROUP],
            "targetSelector": {"matchLabels": {"role": role}},
            "score": {"type": "PodmanV0", "data": {"services": [{"name": name, "image": image}]}},
        },
    }
    (admitted,) = door.admit(json.dumps(manifest))
    deployment = services.deployment_apply(manifest=admitted, actor=None).deployment
    if deployment is None:
        raise RuntimeError(f"{name} was not applied")
    return deployment
