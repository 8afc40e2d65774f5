"""Reads of secrets: their names for people, their values for whoever decided who may have them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

from django.db.models import Prefetch, QuerySet
from django.views.decorators.debug import sensitive_variables

from fleet.core.errors import NotFound
from vault import policy
from vault.models import Secret, SecretEntry
from vault.sealing import Sealer, Unreadable, place_of

log = logging.getLogger(__name__)


class Reference(NamedTuple):
    """One value of a secret, by name."""

    name: str
    key: str


class Login(NamedTuple):
    """For a registry; its text shows no password."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"Login(username={self.username!r})"


def secrets_overview() -> QuerySet[Secret]:
    """Secrets with their keys, for lists: two queries whatever their number, and no sealed value among them."""
    keys = Prefetch("entries", SecretEntry.objects.defer("sealed"))
    return Secret.objects.prefetch_related(keys).order_by("namespace", "name")


def secret_named(namespace: str, name: str) -> Secret:
    """The secret of this name, with its keys.

    Raises:
        NotFound: there is none.
    """
    secret = secrets_overview().filter(namespace=namespace, name=name).first()
    if secret is None:
        raise NotFound(f"there is no secret {namespace[:80]}/{name[:80]}; fleetctl secret list lists them")
    return secret


@sensitive_variables()
def values_of(namespace: str, references: Collection[Reference]) -> dict[Reference, str]:
    """The values that exist, by one query. What can't be decrypted is logged by its name and left out (AGT-10)."""
    entries = SecretEntry.objects.filter(
        secret__namespace=namespace,
        secret__name__in={each.name for each in references},
        key__in={each.key for each in references},
    )
    rows = entries.values_list("secret__name", "key", "sealed")
    wanted = ((Reference(name, key), sealed) for name, key, sealed in rows if Reference(name, key) in references)
    return _opened(namespace, wanted)


@sensitive_variables()
def registry_logins(namespace: str, registries: Collection[str]) -> dict[str, Login]:
    """The logins of a namespace for these registries (in lower case), by one query (AGT-15)."""
    entries = SecretEntry.objects.filter(
        secret__namespace=namespace,
        secret__registry__in=set(registries) - {""},
        key__in=(policy.USERNAME, policy.PASSWORD),
    )
    rows = list(entries.values_list("secret__registry", "secret__name", "key", "sealed"))
    opened = _opened(namespace, ((Reference(name, key), sealed) for _, name, key, sealed in rows))
    found = {}
    for registry, name in {(registry, name) for registry, name, _, _ in rows}:
        username = opened.get(Reference(name, policy.USERNAME))
        password = opened.get(Reference(name, policy.PASSWORD))
        if username is not None and password is not None:
            found[registry] = Login(username, password)
    return found


@sensitive_variables()
def _opened(namespace: str, rows: Iterable[tuple[Reference, str]]) -> dict[Reference, str]:
    sealer, found = Sealer(), {}
    for reference, sealed in rows:
        place = place_of(namespace, reference.name, reference.key)
        try:
            found[reference] = sealer.open(place, sealed)
        except Unreadable:
            log.error("no key of FLEET_SECRET_KEYS decrypts the secret value %s", place)  # noqa: TRY400
    return found
