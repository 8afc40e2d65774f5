"""What people do to secrets; each is audited in its own transaction, by names of keys and never by values (ADM-1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.views.decorators.debug import sensitive_variables

from agent.wire.rules import Fault
from fleet.core import audit, clock
from fleet.core.errors import Conflict, Invalid, NotFound
from vault import policy
from vault.models import Secret, SecretEntry
from vault.sealing import Sealer, place_of
from vault.selectors import secret_named
from vault.services.locking import locked

KIND = "Secret"
Values = Mapping[str, str | None]


@sensitive_variables()
def secret_put(*, namespace: str, name: str, values: Mapping[str, str], registry: str, actor: User | None) -> Secret:
    """Make the secret be exactly this: keys that are not among ``values`` are gone afterwards.

    ``registry`` makes it the login for an image registry; "" for none. No device is told: values are read when a
    revision is new or a container has to be made (AGT-10).

    Raises:
        Invalid: a name, key, value or the registry is not allowed; never with a value in it.
        Conflict: another secret of the namespace is for this registry, or there is no key to encrypt with.
    """
    _check([*policy.name_faults(namespace, name), *policy.value_faults(values)])
    return _write(namespace, name, values, registry=registry, replace=True, actor=actor)


@sensitive_variables()
def secret_merge(*, namespace: str, name: str, values: Values, registry: str | None, actor: User | None) -> Secret:
    """Set these keys and keep the others; ``None`` takes a key away. A secret that does not exist is made.

    ``registry`` None leaves that as it is, "" takes it away.

    Raises:
        Invalid, Conflict: as :func:`secret_put`.
    """
    new = {key: value for key, value in values.items() if value is not None}
    _check([*policy.name_faults(namespace, name), *policy.value_faults(new)])
    return _write(namespace, name, values, registry=registry, replace=False, actor=actor)


def secret_delete(*, namespace: str, name: str, actor: User | None) -> None:
    """Delete it with all its values. Devices that have them already keep working from their own cache.

    Raises:
        NotFound: there is none.
    """
    with transaction.atomic():
        secret = locked(secret_named(namespace, name).pk)
        if secret is None:
            raise NotFound(f"secret {namespace}/{name} was deleted by somebody else at this moment")
        keys = list(SecretEntry.objects.filter(secret=secret).values_list("key", flat=True))
        secret.delete()
        audit.record(actor=actor, action="delete", kind=KIND, name=f"{namespace}/{name}", detail=_listed(removed=keys))


@sensitive_variables()
def _write(
    namespace: str, name: str, values: Values, *, registry: str | None, replace: bool, actor: User | None
) -> Secret:
    try:
        with transaction.atomic():
            secret, is_new = _made_or_locked(namespace, name, actor)
            has = set(SecretEntry.objects.filter(secret=secret).values_list("key", flat=True))
            given = {key: value for key, value in values.items() if value is not None}
            kept = set() if replace else has - values.keys()
            was, now = secret.registry, secret.registry if registry is None else registry.lower()
            _check(policy.whole_faults(kept | given.keys(), now))
            changes = _listed(set=given, removed=has - kept - given.keys())
            changes |= {"registry": now or "none"} if now != was else {}
            if changes:
                _keep_entries(secret, given, kept)
                _stamp(secret, now, actor)
                action = "create" if is_new else "change"
                audit.record(actor=actor, action=action, kind=KIND, name=str(secret), detail=changes)
    except IntegrityError:
        raise Conflict(_taken(namespace, name, registry)) from None
    return secret_named(namespace, name)


def _made_or_locked(namespace: str, name: str, actor: User | None) -> tuple[Secret, bool]:
    """The row, and whether it is new."""
    now = clock.now()
    stamps = {"created_at": now, "updated_at": now, "updated_by": audit.actor_name(actor)}
    found, is_new = Secret.objects.get_or_create(namespace=namespace, name=name, defaults=stamps)
    secret = locked(found.pk)
    if secret is None:
        raise Conflict(_taken(namespace, name, registry=None))
    return secret, is_new


@sensitive_variables()
def _keep_entries(secret: Secret, given: Mapping[str, str], kept: set[str]) -> None:
    sealer = Sealer()
    rows = []
    for key, value in given.items():
        sealed = sealer.seal(place_of(secret.namespace, secret.name, key), value)
        rows.append(SecretEntry(secret=secret, key=key, sealed=sealed, sealed_with=sealer.newest))
    SecretEntry.objects.filter(secret=secret).exclude(key__in=kept | given.keys()).delete()
    SecretEntry.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["secret", "key"], update_fields=["sealed", "sealed_with"]
    )


def _stamp(secret: Secret, registry: str, actor: User | None) -> None:
    Secret.objects.filter(pk=secret.pk).update(
        registry=registry, updated_at=clock.now(), updated_by=audit.actor_name(actor)
    )


def _check(faults: list[Fault]) -> None:
    if faults:
        raise Invalid("; ".join(map(str, faults)), faults)


def _taken(namespace: str, name: str, registry: str | None) -> str:
    others = Secret.objects.filter(namespace=namespace, registry=(registry or "").lower()).exclude(name=name)
    other = others.values_list("name", flat=True).first() if registry else None
    if other is None:
        return f"secret {namespace}/{name} is being written to at this moment; nothing was changed, try again"
    return (
        f"secret {namespace}/{other} is the login for {registry} already; a namespace has one for each registry: "
        "change or delete that one"
    )


def _listed(**keys: Any) -> dict[str, str]:
    """Names for the audit, without what is empty."""
    return {verb: ", ".join(sorted(names)) for verb, names in keys.items() if names}
