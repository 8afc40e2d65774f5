"""Whether this process lives, and whether it can serve (OPS-3)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from celery import current_app
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

#: A check returns a sentence when something is wrong, and nothing when all is well.
Check = Callable[[], str | None]
BROKER_SECONDS = 2

_checks: dict[str, Check] = {}
log = logging.getLogger(__name__)


def register(name: str, check: Check) -> None:
    """Add a check to ``/readyz``; apps call this when they are ready."""
    _checks[name] = check


def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when all checks pass, else 503 with a sentence for each that doesn't."""
    faults = {name: fault for name, check in _checks.items() if (fault := _run(check))}
    return JsonResponse({"ready": not faults, "faults": faults}, status=503 if faults else 200)


def _run(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # whatever a database or broker raises, the answer is the same
        # Anybody may ask here, so addresses and the like go to the log only.
        log.warning("readiness: %s", error)
        return f"does not answer ({type(error).__name__}); the log says more"


def _database() -> str | None:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not waiting:
        return None
    return f"{len(waiting)} migration{'s are' if len(waiting) > 1 else ' is'} not applied; run manage.py migrate"


def _broker() -> str | None:
    with current_app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS)
    return None


register("database", _database)
register("broker", _broker)
