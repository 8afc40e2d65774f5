"""Encrypting everything with the newest key, before an old one is taken out of ``FLEET_SECRET_KEYS``."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from fleet.core import audit
from fleet.core.errors import Conflict
from vault.models import SecretEntry
from vault.sealing import NO_KEYS, Sealer, Unreadable, place_of

BATCH = 200


@dataclass(slots=True)
class Rotated:
    """What a rotation did: values encrypted anew, and by name those that no key decrypts."""

    done: int = 0
    unreadable: list[str] = field(default_factory=list)


def secrets_rotate() -> Rotated:
    """Encrypt every value anew that is not sealed with the newest key.

    Safe at any moment, twice at once, and when interrupted: each batch is committed, and the next run goes on with
    what is left. A value that changes meanwhile keeps its change, which the newest key has sealed already.

    Raises:
        Conflict: there is no key.
    """
    sealer, rotated, last = Sealer(), Rotated(), 0
    if not sealer.newest:
        raise Conflict(NO_KEYS)
    while batch := _after(last, sealer.newest):
        with transaction.atomic():
            for entry in batch:
                _rotate(entry, sealer, rotated)
        last = batch[-1].pk
    if rotated.done:
        audit.record(actor=None, action="rotate", kind="Secret", name="all", detail={"values": rotated.done})
    return rotated


def _after(last: int, newest: str) -> list[SecretEntry]:
    rows = SecretEntry.objects.select_related("secret").exclude(sealed_with=newest)
    return list(rows.filter(pk__gt=last).order_by("pk")[:BATCH])


@sensitive_variables()
def _rotate(entry: SecretEntry, sealer: Sealer, rotated: Rotated) -> None:
    place = place_of(entry.secret.namespace, entry.secret.name, entry.key)
    try:
        value = sealer.open(place, entry.sealed)
    except Unreadable:
        rotated.unreadable.append(place)
        return
    sealed = sealer.seal(place, value)
    unchanged = SecretEntry.objects.filter(pk=entry.pk, sealed=entry.sealed)
    rotated.done += unchanged.update(sealed=sealed, sealed_with=sealer.newest)
