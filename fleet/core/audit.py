"""Writing down what people did and what happened by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from fleet.core import clock
from fleet.core.models import AuditEntry, Event

#: Who acts when nobody asked.
SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Happening:
    """An event to be written with others in one statement."""

    kind: str
    name: str
    reason: str
    message: str = ""


def record(
    *, actor: User | None, action: str, kind: str, name: str, detail: dict[str, Any] | None = None
) -> AuditEntry:
    """Note a person's action on an object; belongs into the transaction that carries it out (ADM-1)."""
    return AuditEntry.objects.create(
        at=clock.now(),
        actor=actor,
        actor_name=actor_name(actor),
        action=action,
        object_kind=kind,
        object_name=name,
        detail=detail or {},
    )


def actor_name(actor: User | None) -> str:
    """What an audit entry calls this person."""
    return actor.get_username() if actor else SYSTEM


def event(*, kind: str, name: str, reason: str, message: str = "") -> None:
    """Note something that happened by itself; ``reason`` is one CamelCase word, ``message`` one sentence."""
    events([Happening(kind, name, reason, message)])


def events(happenings: Iterable[Happening]) -> None:
    """Note many happenings with one statement."""
    now = clock.now()
    Event.objects.bulk_create(
        [
            Event(at=now, object_kind=one.kind, object_name=one.name, reason=one.reason, message=one.message)
            for one in happenings
        ],
        batch_size=1000,
    )
