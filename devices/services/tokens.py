"""Secrets that we hand out once and keep as a hash, and the enrolment tokens among them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F

from agent.wire.rules import Fault
from devices import policy
from devices.models import DeviceGroup, EnrolmentToken
from fleet.core import audit, clock
from fleet.core.errors import Conflict, Denied, Invalid, Unauthorised

KIND = "EnrolmentToken"
MAX_USES = 100_000
TOKEN_BYTES = 32


def new_secret(prefix: str) -> str:
    """A random secret of 256 bits; the prefix tells people and secret scanners what it is."""
    return f"{prefix}_{secrets.token_urlsafe(TOKEN_BYTES)}"


def hash_of(secret: str) -> str:
    """What is stored of a secret: it is random and long, so one SHA-256 does, and can be indexed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def token_create(
    *,
    name: str,
    expires_at: datetime,
    use_limit: int,
    labels: Mapping[str, str],
    groups: Iterable[DeviceGroup],
    actor: User | None,
) -> tuple[EnrolmentToken, str]:
    """A new enrolment token and its plain text, which is shown now and never again (DEV-1).

    Raises:
        Invalid: when expiry, limit or a label is not allowed.
        Conflict: when the name is taken.
    """
    _check(expires_at, use_limit, labels)
    plain = new_secret("enrol")
    try:
        with transaction.atomic():
            token = EnrolmentToken.objects.create(
                name=name,
                token_hash=hash_of(plain),
                created_at=clock.now(),
                created_by=actor,
                expires_at=expires_at,
                use_limit=use_limit,
                labels=dict(labels),
            )
            token.groups.set(groups)
            audit.record(
                actor=actor,
                action="create",
                kind=KIND,
                name=name,
                detail={"expires_at": expires_at.isoformat(), "use_limit": use_limit},
            )
    except IntegrityError:
        raise Conflict(f"there is an enrolment token named {name!r} already; choose another name") from None
    return token, plain


def _check(expires_at: datetime, use_limit: int, labels: Mapping[str, str]) -> None:
    faults = []
    if expires_at <= clock.now():
        faults.append(Fault("expiresAt", f"{expires_at:%Y-%m-%d %H:%M} UTC is past; needed: a time to come"))
    if not 1 <= use_limit <= MAX_USES:
        faults.append(Fault("useLimit", f"found {use_limit}; allowed: 1 to {MAX_USES}"))
    for key, value in labels.items():
        if refusal := policy.label_refusal(key, value):
            faults.append(Fault(f"labels.{key[:80]}", refusal))
    if faults:
        raise Invalid("; ".join(map(str, faults)), faults)


def token_revoke(*, token: EnrolmentToken, actor: User | None) -> None:
    """Let nobody in by this token any more; devices that it let in stay."""
    with transaction.atomic():
        revoked = EnrolmentToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=clock.now())
        if revoked:
            audit.record(actor=actor, action="revoke", kind=KIND, name=token.name)


def token_use(*, plain: str) -> EnrolmentToken:
    """Count one use of a token; of two who take the last one, one gets it (case E4).

    Raises:
        Unauthorised: when there is no such token.
        Denied: when it lets nobody in any more; says why.
    """
    found = EnrolmentToken.objects.filter(token_hash=hash_of(plain))
    token = found.first()
    if token is None:
        raise Unauthorised("this enrolment token is unknown; ask an operator for a new one")
    facts = policy.TokenFacts(token.expires_at, token.use_limit, token.uses, token.revoked_at)
    refusal = policy.token_refusal(facts, clock.now())
    counted = not refusal and found.filter(uses__lt=F("use_limit"), revoked_at__isnull=True).update(uses=F("uses") + 1)
    if not counted:
        refusal = refusal or f"has been used {token.use_limit} times; its limit is {token.use_limit}"
        raise Denied(f"enrolment token {token.name!r} {refusal}; ask an operator for a new one")
    return token
