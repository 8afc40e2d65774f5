"""What an updater asks before it begins, and after each boot (TSK-4)."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse

from agent.wire.messages import AttemptOffer
from devices.agent_views import agent_view, device_of, json_answer
from fleet.core.errors import NotFound
from upgrades.selectors import attempt_for, remaining_seconds


@agent_view("GET")
def offer(request: HttpRequest, uid: str) -> HttpResponse:
    """How many seconds an attempt of this device may still begin; 0 after its deadline, end or withdrawal."""
    attempt = attempt_for(device_of(request), _uuid(uid))
    if attempt is None:
        raise NotFound("this device has no such attempt")
    answer = json_answer(
        AttemptOffer(attempt=str(attempt.uid), executor=attempt.executor, remaining_seconds=remaining_seconds(attempt))
    )
    answer["Cache-Control"] = "no-store"
    return answer


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
