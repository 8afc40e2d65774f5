"""What operators do to devices; each is audited in its own transaction (ADM-1)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, transaction

from agent.wire import names
from agent.wire.rules import Fault
from devices import policy
from devices.models import DesiredHead, Device, DeviceGroup, Heartbeat, ReenrolmentPermit
from devices.services.enrolment import KIND
from devices.signals import device_changed, device_forgotten
from fleet.core import audit, clock
from fleet.core.errors import Conflict, Invalid, NotFound

log = logging.getLogger(__name__)

FORGET_ATTEMPTS = 5
#: How long an operator's reset lets the next enrolment in.
PERMIT_LIFETIME = timedelta(hours=24)
GROUP_KIND = "DeviceGroup"


def device_forget(*, device: Device, actor: User | None) -> None:
    """Delete a device: its credential ends at once and it can't come back by itself (DEV-2).

    A frozen canary that is forgotten counts as failed (DEP-12); what it runs keeps running on the machine.

    Raises:
        Conflict: when rows of the device are written all the time, by rollouts or its own reports (case E4).
    """
    for _attempt in range(FORGET_ATTEMPTS):
        try:
            _forget(device, actor)
        except (IntegrityError, OperationalError) as error:
            # A row was added while we deleted, or the database has ended a deadlock: both are over at the next try.
            log.info("could not be forgotten yet: %s", error, extra={"device": device.name})
        else:
            return
    raise Conflict(f"device {device.name!r} is being written to at this moment; nothing was changed, try again")


@transaction.atomic
def _forget(device: Device, actor: User | None) -> None:
    name, uid = device.name, device.uid
    # A drain or release that comes now waits, and finds the device gone. The device itself is locked last, by its
    # deletion: whoever inserts a row that refers to it looks it up at commit, with locks of its own in hand.
    for model in (Heartbeat, DesiredHead):
        model.objects.select_for_update().filter(device=device).first()
    # A copy: a deleted object has lost its key, and we may have to try again.
    if fresh := Device.objects.filter(pk=device.pk).first():
        fresh.delete()
        audit.record(actor=actor, action="forget", kind=KIND, name=name, detail={"uid": str(uid)})
        transaction.on_commit(lambda: device_forgotten.send(sender=Device, name=name, uid=uid))


def device_reset_credential(*, device: Device, actor: User | None) -> None:
    """End the device's credential now and let it enrol again under its name within a day (DEV-2, case E3)."""
    now = clock.now()
    with transaction.atomic():
        # An enrolment with the old credential locks the same row: what it was given ends here too.
        _locked(device).credentials.all().delete()
        ReenrolmentPermit.objects.update_or_create(
            device=device, defaults={"created_at": now, "expires_at": now + PERMIT_LIFETIME}
        )
        audit.record(actor=actor, action="reset-credential", kind=KIND, name=device.name)


def device_set_canary(*, device: Device, canary: bool, actor: User | None) -> None:
    """Make a device go first, or not, in rollouts that are frozen from now on (DEP-10)."""
    with transaction.atomic():
        fresh = _locked(device)
        if fresh.canary == canary:
            return
        fresh.canary = canary
        _save_labels(fresh, "canary")
        action = "mark-canary" if canary else "unmark-canary"
        audit.record(actor=actor, action=action, kind=KIND, name=fresh.name)


def device_set_labels(*, device: Device, labels: Mapping[str, str], actor: User | None) -> None:
    """Replace the operator's labels of a device; they win over those that it reports (DEV-4).

    Raises:
        Invalid: naming each label that is not allowed.
    """
    faults = [
        Fault(f"labels.{str(key)[:80]}", refusal)
        for key, value in labels.items()
        if (refusal := policy.label_refusal(str(key), value if isinstance(value, str) else "\n"))
    ]
    if faults:
        raise Invalid("; ".join(map(str, faults)), faults)
    with transaction.atomic():
        fresh = _locked(device)
        before, fresh.operator_labels = fresh.operator_labels, dict(labels)
        if before == fresh.operator_labels:
            return
        _save_labels(fresh, "operator_labels")
        audit.record(
            actor=actor, action="label", kind=KIND, name=fresh.name, detail={"before": before, "after": dict(labels)}
        )


def _save_labels(device: Device, field: str) -> None:
    device.labels = policy.effective_labels(device.name, device.canary, device.operator_labels, device.reported_labels)
    device.save(update_fields=[field, "labels"])
    transaction.on_commit(lambda: device_changed.send(sender=Device))


def _locked(device: Device) -> Device:
    fresh = Device.objects.select_for_update(no_key=True).filter(pk=device.pk).first()
    if fresh is None:
        raise NotFound(f"device {device.name!r} was forgotten meanwhile")
    return fresh


def group_create(*, name: str, actor: User | None) -> DeviceGroup:
    """A new, empty group of the database source.

    Raises:
        Invalid: when the name has not the form of one.
        Conflict: when it exists.
    """
    if not names.fits(names.DNS_SUBDOMAIN, name):
        allowed = "lower-case letters, digits, - and ., each part beginning and ending with a letter or digit"
        raise Invalid(f"group name {name[:80]!r} is not allowed; allowed: {allowed}")
    try:
        with transaction.atomic():
            group = DeviceGroup.objects.create(name=name)
            audit.record(actor=actor, action="create", kind=GROUP_KIND, name=name)
    except IntegrityError:
        raise Conflict(f"there is a group {name!r} already") from None
    return group


def group_delete(*, group: DeviceGroup, actor: User | None) -> None:
    """Delete a group. Frozen target sets stay as they are; nothing new matches by it."""
    with transaction.atomic():
        name = group.name
        group.delete()
        audit.record(actor=actor, action="delete", kind=GROUP_KIND, name=name)


def group_set_devices(*, group: DeviceGroup, devices: Collection[str], actor: User | None) -> None:
    """Say which devices, by name, are in a group.

    Raises:
        NotFound: naming the devices that don't exist; nothing is changed then.
    """
    with transaction.atomic():
        rows = Device.objects.select_for_update(no_key=True).filter(name__in=devices).order_by("pk")
        found = dict(rows.values_list("name", "pk"))
        if missing := sorted(set(devices) - set(found)):
            raise NotFound(f"there is no device {', '.join(missing[:10])}; the group was left as it was")
        before = sorted(group.devices.values_list("name", flat=True))
        group.devices.set(found.values())
        if before != sorted(found):
            detail = {"before": before, "after": sorted(found)}
            audit.record(actor=actor, action="set-devices", kind=GROUP_KIND, name=group.name, detail=detail)
            transaction.on_commit(lambda: device_changed.send(sender=Device))
