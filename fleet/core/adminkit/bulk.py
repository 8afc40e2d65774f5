"""One operation on many objects, chosen in a list: asked once, done one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from fleet.core.adminkit.show import plural
from fleet.core.errors import FleetError

#: More are for a script: each is a transaction of its own, and somebody waits for the page.
MOST = 500
TOLD = 5


class Doable(Protocol):
    """What is needed of an operation here."""

    name: str
    label: str
    run: Callable[[Any, Any, dict[str, Any]], str]
    consequences: Callable[[Any], Sequence[str]]
    offered: Callable[[Any], bool]


def action(operation: Doable) -> Callable[[Any, HttpRequest, QuerySet[Any]], HttpResponse | None]:
    """A Django list action: the confirmation page first, the doing when that is sent."""

    def run(admin: Any, request: HttpRequest, chosen: QuerySet[Any]) -> HttpResponse | None:
        objects = list(chosen[: MOST + 1])
        if len(objects) > MOST:
            messages.error(request, f"More than {MOST} are chosen; allowed: up to {MOST} at once. Nothing was changed.")
            return None
        wanted = [each for each in objects if operation.offered(each)]
        if "confirmed" not in request.POST:
            return _ask(admin, request, operation, wanted)
        _do(request, operation, wanted)
        return None

    return run


def _ask(admin: Any, request: HttpRequest, operation: Doable, wanted: Sequence[Any]) -> HttpResponse:
    sentences = dict.fromkeys(line for each in wanted for line in operation.consequences(each))
    context = admin.page_context(
        request,
        operation=operation,
        chosen=wanted,
        consequences=list(sentences),
        field=ACTION_CHECKBOX_NAME,
        title=operation.label,
        cancel=admin.link("changelist"),
    )
    return TemplateResponse(request, "fleet/confirm_bulk.html", context)


def _do(request: HttpRequest, operation: Doable, wanted: Iterable[Any]) -> None:
    """One object that is refused does not stop the others; who was refused is told."""
    done, refused = 0, []
    for each in wanted:
        name = str(each)
        try:
            operation.run(each, request.user, {})
            done += 1
        except FleetError as error:
            refused.append(f"{name}: {error}")
    if done:
        messages.success(request, f"{operation.label}: done for {done}.")
    if refused:
        more = f" and {len(refused) - TOLD} more" if len(refused) > TOLD else ""
        told = "; ".join(refused[:TOLD])
        messages.error(request, f"{operation.label}: refused for {plural(len(refused), 'object')}: {told}{more}")
