"""Celery's entry points: each calls one service, and may run twice at once (R14)."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from fleet.core.jobs import periodic, scheduled
from upgrades import services


@periodic("upgrades.sweep")
def sweep() -> None:
    """Bring all wanted agents to what their devices and attempts have said."""
    services.agents_evaluate()


SCHEDULE: dict[str, dict[str, Any]] = {
    "upgrades.sweep": scheduled(sweep, settings.FLEET_SWEEP_SECONDS),
}
