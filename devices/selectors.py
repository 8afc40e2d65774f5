"""Reads about devices that are more than a get."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, QuerySet

from devices.models import Connectivity, Device, Heartbeat
from fleet.core.errors import NotFound


class Candidate(NamedTuple):
    """A device as far as a selector looks at it."""

    id: int
    name: str
    uid: UUID
    canary: bool
    labels: dict[str, str]


def candidates() -> list[Candidate]:
    """All enrolled devices, in the order of their ids: one query."""
    rows = Device.objects.order_by("id").values_list("id", "name", "uid", "canary", "labels")
    return [Candidate(*row) for row in rows.iterator(chunk_size=5000)]


def devices_overview() -> QuerySet[Device]:
    """Devices with their heartbeat and groups, for lists: two queries whatever their number."""
    return Device.objects.select_related("heartbeat").prefetch_related("groups")


def device_named(name: str) -> Device:
    """The device of this name, with its heartbeat and groups.

    Raises:
        NotFound: there is none.
    """
    device = devices_overview().filter(name=name).first()
    if device is None:
        raise NotFound(f"there is no device {name[:80]!r}")
    return device


def connectivity_counts() -> dict[str, int]:
    """How many devices are in each state of connectivity, zeros included: one query."""
    found = dict(Heartbeat.objects.values_list("connectivity").annotate(number=Count("pk")))
    return {state.value: found.get(state.value, 0) for state in Connectivity}
