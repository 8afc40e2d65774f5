"""The first page of the admin: how the fleet is, what waits and why, and what has just happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Min, Q
from django.db.models.functions import TruncHour
from django.http import HttpRequest
from django.urls import reverse

from devices.admin import looks as device_looks
from devices.models import Connectivity, Heartbeat, ReportInbox
from devices.selectors import connectivity_counts
from fleet.core import clock
from fleet.core.adminkit import charts, show
from fleet.core.models import Event
from rollouts import selectors
from rollouts.admin import live, looks
from rollouts.models import DELETING, Phase
from tasks.admin import looks as task_looks
from tasks.models import LIVE_PHASES, TaskRun
from upgrades.selectors import repair_required

WAITING_SHOWN, EVENTS_SHOWN, HOURS = 8, 7, 24
#: A drop is told when this share of the devices that used to report is silent, and at least this many (E5).
DROP_SHARE, DROP_LEAST = 0.1, 2
#: Only devices that fell silent this recently make a drop; those gone for longer are known to be away.
DROP_WINDOW = timedelta(hours=1)
#: Reports that wait longer than this to be taken in mean that no worker drains them.
INBOX_PATIENCE = timedelta(seconds=60)
TROUBLE = ("Offline", "Stale", "Failed", "Unreadable", "Invalid", "Problem", "Error")


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold's dashboard callback; the number of queries is constant. Each part is there for those who may see it."""
    may = request.user.has_perm
    context["title"] = "Overview"
    if may("devices.view_device"):
        context |= _devices()
    if may("rollouts.view_deployment"):
        context |= _deployments()
    if may("tasks.view_taskrun"):
        context |= _task_runs()
    if may("upgrades.view_attempt"):
        context["repairs"], context["repair_total"] = _repairs()
    if may("core.view_event"):
        context |= _events()
    return context


# Devices -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Silence:
    """How many devices ever reported, and how many of them fell silent just now."""

    reporting_once: int
    newly_silent: int
    since: datetime | None


def dropped(silence: Silence) -> bool:
    """Whether so many devices fell silent at once that it is no single device's matter (E5)."""
    enough = silence.newly_silent >= DROP_SHARE * silence.reporting_once
    return enough and silence.newly_silent >= max(1, min(DROP_LEAST, silence.reporting_once))


def _devices() -> dict[str, Any]:
    now = clock.now()
    counted = connectivity_counts()
    address = reverse("admin:devices_device_changelist")
    slices = [
        charts.Slice(
            counted[state],
            look.tone,
            Connectivity(state).label,
            f"{address}?heartbeat__connectivity__exact={Connectivity(state).value}",
        )
        for state, look in device_looks.CONNECTIVITY.items()
    ]
    return {
        "device_total": sum(counted.values()),
        "device_tiles": [
            (each, device_looks.CONNECTIVITY[state].icon)
            for each, state in zip(slices, device_looks.CONNECTIVITY, strict=True)
        ],
        "device_chart": charts.donut(slices, "devices"),
        "alarms": _alarms(now),
    }


def _alarms(now: datetime) -> list[dict[str, str]]:
    """What is wrong with the fleet as a whole."""
    alarms = []
    oldest = ReportInbox.objects.aggregate(at=Min("received_at"))["at"]
    if oldest is not None and now - oldest > INBOX_PATIENCE:
        text = f"The oldest has waited since {show.exact(oldest)}. Check that a Celery worker and beat are running."
        alarms.append({"title": "Reports arrive, but nobody takes them in", "text": text})
    silence = _silence(now)
    if dropped(silence):
        text = (
            f"{silence.newly_silent} of {show.plural(silence.reporting_once, 'device')} that used to report fell silent"
            f" within the last hour; the last was heard at {show.exact(silence.since or now)}. "
            "Check the network, the proxy in front of this server, and the worker."
        )
        alarms.append({"title": "Fewer devices are reporting", "text": text})
    return alarms


def _silence(now: datetime) -> Silence:
    """By the time of the last report, not by the state that a worker would have to set: it may be the one missing."""
    late = now - timedelta(seconds=settings.FLEET_STALE_SECONDS)
    newly = Q(last_seen__lt=late, last_seen__gte=late - DROP_WINDOW)
    found = Heartbeat.objects.exclude(last_seen=None).aggregate(
        all=Count("pk"), silent=Count("pk", filter=newly), last=Max("last_seen", filter=newly)
    )
    return Silence(found["all"], found["silent"], found["last"])


# Deployments ---------------------------------------------------------------------------------------------------------


def _deployments() -> dict[str, Any]:
    rows = selectors.deployment_list()
    address = reverse("admin:rollouts_deployment_changelist")
    counted = dict(rows.order_by().values_list("phase").annotate(number=Count("pk")))
    shown = [name for name in looks.PHASES if name != Phase.SUPERSEDED]
    waiting = rows.exclude(phase__in=(Phase.CONVERGED, Phase.CANCELLED)).order_by("-phase_since")
    return {
        "deployment_total": sum(counted.values()),
        "phase_tiles": [
            (
                charts.Slice(counted.get(name, 0), looks.PHASES[name].tone, name, f"{address}?phase={name}"),
                looks.PHASES[name].icon,
            )
            for name in shown
            if counted.get(name) or name not in (Phase.CANCELLED, DELETING)
        ],
        "waiting_total": sum(
            number for name, number in counted.items() if name not in (Phase.CONVERGED, Phase.CANCELLED)
        ),
        "waiting": [
            {
                "deployment": each,
                "phase": looks.phase(each.phase),
                "bar": looks.progress_bar(each),
                "sentence": live.sentence(each),
                "link": reverse("admin:rollouts_deployment_change", args=[each.pk]),
            }
            for each in waiting[:WAITING_SHOWN]
        ],
    }


# Task runs -----------------------------------------------------------------------------------------------------------


def _task_runs() -> dict[str, Any]:
    live_runs = TaskRun.objects.filter(phase__in=LIVE_PHASES)
    return {
        "task_run_total": live_runs.count(),
        "task_runs": [
            {
                "run": run,
                "phase": task_looks.phase(run.phase),
                "progress": task_looks.progress(run),
                "link": task_looks.address(run.kind, run.pk),
            }
            for run in live_runs[:WAITING_SHOWN]
        ],
    }


def _repairs() -> tuple[list[dict[str, Any]], int]:
    """Devices that refuse every upgrade until root repairs them (SYS-6)."""
    found = repair_required()
    rows = [
        {"attempt": each, "link": reverse("admin:upgrades_attempt_change", args=[each.pk])}
        for each in found[:WAITING_SHOWN]
    ]
    return rows, found.count()


# Events --------------------------------------------------------------------------------------------------------------


def _events() -> dict[str, Any]:
    now = clock.now()
    start = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    rows = (
        Event.objects.filter(at__gte=start)
        .annotate(hour=TruncHour("at"))
        .values_list("hour", "reason")
        .annotate(number=Count("pk"))
        .order_by()
    )
    hours: dict[datetime, Counter[str]] = {start + timedelta(hours=index): Counter() for index in range(HOURS)}
    for hour, reason, number in rows:
        if hour in hours:
            hours[hour]["bad" if _is_trouble(reason) else "info"] += number
    stacks = [_column(hour, counted) for hour, counted in hours.items()]
    total = sum(sum(counted.values()) for counted in hours.values())
    trouble = sum(counted["bad"] for counted in hours.values())
    return {
        "events": [(event, _is_trouble(event.reason)) for event in Event.objects.all()[:EVENTS_SHOWN]],
        "event_chart": charts.columns(stacks, f"{total} events in the last {HOURS} hours, {trouble} of them trouble"),
    }


def _column(hour: datetime, counted: Counter[str]) -> charts.Column:
    words = f"{hour:%H:00} UTC: {counted['info']} ordinary, {counted['bad']} trouble"
    label = f"{hour:%H:00}" if hour.hour % 6 == 0 else ""
    return charts.Column([(counted["info"], "info"), (counted["bad"], "bad")], label, words)


def _is_trouble(reason: str) -> bool:
    return any(word in reason for word in TROUBLE)
