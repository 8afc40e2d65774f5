"""How a device gets in, and how nobody gets in under its name (DEV-1, DEV-2)."""

from __future__ import annotations

import hmac
import logging
from datetime import datetime

from django.db import IntegrityError, transaction

from agent.wire import names
from agent.wire.messages import EnrolReply, EnrolRequest
from devices import policy
from devices.models import Connectivity, Credential, DesiredHead, Device, EnrolmentToken, Heartbeat, ReenrolmentPermit
from devices.services.tokens import hash_of, new_secret, token_use
from fleet.core import audit, clock
from fleet.core.errors import Conflict, Invalid

log = logging.getLogger(__name__)
KIND = "Device"


def device_enrol(*, request: EnrolRequest) -> EnrolReply:
    """Exchange an enrolment token for a credential.

    A name that exists is given again only to who shows its old credential, or after an operator's reset; the device
    stays the same one then, and its former credential ends.

    Raises:
        Invalid: when the device id is no RFC 1123 label.
        Unauthorised, Denied: when the token lets nobody in.
        Conflict: when the name is taken; says what to do.
    """
    if not names.fits(names.DNS_LABEL, request.device):
        raise Invalid(
            f"device id {request.device[:80]!r} is not allowed; "
            "allowed: 1 to 63 lower-case letters, digits and -, beginning and ending with a letter or digit"
        )
    try:
        with transaction.atomic():
            token = token_use(plain=request.token)
            device, again = _device(request, token)
            credential = _new_credential(device)
            action = "enrol-again" if again else "enrol"
            audit.record(actor=None, action=action, kind=KIND, name=device.name, detail={"token": token.name})
    except IntegrityError:
        raise Conflict(f"another device is enrolling as {request.device!r} at this moment; try again") from None
    log.info("enrolled with token %s", token.name, extra={"device": device.name})
    return EnrolReply(device=device.name, uid=str(device.uid), credential=credential)


def _device(request: EnrolRequest, token: EnrolmentToken) -> tuple[Device, bool]:
    known = Device.objects.select_for_update().filter(name=request.device).first()
    if known is None:
        return _create(request.device, token), False
    if not _may_return(known, request.credential):
        raise Conflict(
            f"device {known.name!r} is enrolled already; enrol with its old credential, "
            f"or let an operator reset it (fleetctl device reset {known.name})"
        )
    return known, True


def _create(name: str, token: EnrolmentToken) -> Device:
    now = clock.now()
    device = Device.objects.create(
        name=name,
        enrolled_at=now,
        operator_labels=token.labels,
        labels=policy.effective_labels(name, False, token.labels, {}),
    )
    Heartbeat.objects.create(device=device, connectivity=Connectivity.NEVER, connectivity_since=now)
    DesiredHead.objects.create(device=device)
    device.groups.set(token.groups.all())
    audit.event(kind=KIND, name=name, reason="Enrolled", message=f"Enrolled with token {token.name}")
    return device


def _may_return(device: Device, credential: str) -> bool:
    now: datetime = clock.now()
    permitted, _ = ReenrolmentPermit.objects.filter(device=device, expires_at__gt=now).delete()
    if permitted:
        return True
    shown = hash_of(credential)
    return any(hmac.compare_digest(shown, each.token_hash) for each in device.credentials.all())


def _new_credential(device: Device) -> str:
    plain = new_secret("device")
    device.credentials.all().delete()
    Credential.objects.create(device=device, token_hash=hash_of(plain), created_at=clock.now())
    return plain
