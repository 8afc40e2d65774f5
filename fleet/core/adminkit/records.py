"""Events and audit entries of one object, for its page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from fleet.core.models import AuditEntry, Event

SHOWN = 8


def records_of(request: HttpRequest, kind: str, name: str) -> dict[str, Any]:
    """The newest events and audit entries of an object, as far as the user may see them; one query each."""
    about = {"object_kind": kind, "object_name": name}
    may = request.user.has_perm
    return {
        "record_name": name,
        "events": list(Event.objects.filter(**about)[:SHOWN]) if may("core.view_event") else [],
        "audit": list(AuditEntry.objects.filter(**about)[:SHOWN]) if may("core.view_auditentry") else [],
    }
