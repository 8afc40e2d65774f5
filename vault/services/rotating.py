"""Encrypting everything with the newest key, before an old one is taken out of ``FLEET_SECRET_KEYS``."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from fleet.core import audit
from fleet.core.errors import Conflict
from vault.models import Secret, SecretEntry
from vault.sealing import NO_KEYS, Sealer, Unreadable, place_of
from vault.services.locking import locked

BATCH = 500


@dataclass(slots=True)
class Rotated:
    """What a rotation did: values encrypted anew, and by name those that no key decrypts."""

    done: int = 0
    unreadable: list[str] = field(default_factory=list)


def secrets_rotate() -> Rotated:
    """Encrypt every value anew that is not sealed with the newest key.

    Safe at any moment, twice at once, and when interrupted: each secret is committed for itself, and the next run goes
    on with those that are left.

    Raises:
        Conflict: there is no key.
    """
    sealer, rotated, last = Sealer(), Rotated(), 0
    if not sealer.newest:
        raise Conflict(NO_KEYS)
    while batch := _after(last, sealer.newest):
        for pk in batch:
            _rotate(pk, sealer, rotated)
        last = batch[-1]
    if rotated.done:
        audit.record(actor=None, action="rotate", kind="Secret", name="all", detail={"values": rotated.done})
    return rotated


def _after(last: int, newest: str) -> list[int]:
    """The next secrets with something to do."""
    stale = SecretEntry.objects.exclude(sealed_with=newest).filter(secret_id__gt=last)
    return list(stale.order_by("secret_id").values_list("secret_id", flat=True).distinct()[:BATCH])


@transaction.atomic
def _rotate(pk: int, sealer: Sealer, rotated: Rotated) -> None:
    secret = locked(pk)
    if secret is not None:
        for entry in SecretEntry.objects.filter(secret=secret).exclude(sealed_with=sealer.newest):
            _seal_anew(secret, entry, sealer, rotated)


@sensitive_variables()
def _seal_anew(secret: Secret, entry: SecretEntry, sealer: Sealer, rotated: Rotated) -> None:
    place = place_of(secret.namespace, secret.name, entry.key)
    try:
        value = sealer.open(place, entry.sealed)
    except Unreadable:
        rotated.unreadable.append(place)
        return
    SecretEntry.objects.filter(pk=entry.pk).update(sealed=sealer.seal(place, value), sealed_with=sealer.newest)
    rotated.done += 1
