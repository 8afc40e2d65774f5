"""Whether what devices say is taken in (OPS-3): the sign that workers and beat run."""

from __future__ import annotations

from devices.models import ReportInbox
from fleet.core import clock

#: Many times the drain's period; a worker that restarts is not worth an alarm.
LAG_SECONDS = 60


def inbox() -> str | None:
    """A sentence when the oldest report waits too long, for ``/readyz``."""
    oldest = ReportInbox.objects.order_by("id").values_list("received_at", flat=True).first()
    waits = (clock.now() - oldest).total_seconds() if oldest else 0
    if waits <= LAG_SECONDS:
        return None
    return (
        f"the oldest unread report waits for {waits:.0f} s; allowed: {LAG_SECONDS}; are a worker and the beat running?"
    )
