"""Reads about devices that are more than a get."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, QuerySet

from agent.wire.manifest import LabelSelector
from devices import group_sources
from devices.models import Connectivity, Device, Heartbeat
from fleet.core.errors import NotFound
from fleet.targeting import conditions, policy
from fleet.targeting.conditions import Obstacle
from fleet.targeting.policy import Chosen, choose, why_nobody

log = logging.getLogger(__name__)
_related: list[str] = []


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


@dataclass(frozen=True, slots=True)
class Match:
    """The devices to freeze, or the obstacle; never both."""

    chosen: list[Chosen] = field(default_factory=list)
    obstacle: Obstacle | None = None


def match(
    selector: LabelSelector, groups: Collection[str], devices: Collection[policy.Candidate] | None = None
) -> Match:
    """Labels and groups (DEP-6, DEP-7). Fails closed: without a whole answer of a group source nobody matches.

    Belongs outside any lock, because a group source may be slow. ``devices`` saves the query when several are matched
    in a row.
    """
    try:
        source = group_sources.configured()
        if source is None:
            return Match(obstacle=conditions.GROUP_SOURCE_MISSING)
        membership = group_sources.ask(source, groups) if groups else {}
    except group_sources.GroupSourceError as error:
        log.warning("the group source failed: %s", error)
        return Match(obstacle=conditions.group_source_failed(error))
    choice = choose(selector, groups, candidates() if devices is None else devices, membership)
    if choice.chosen:
        return Match(chosen=choice.chosen)
    return Match(obstacle=conditions.no_device(why_nobody(selector, groups, choice)))


def relate(name: str) -> None:
    """Have :func:`devices_overview` read this relation to one row of an app above as well."""
    _related.append(name)


def devices_overview() -> QuerySet[Device]:
    """Devices with their heartbeat and groups, for lists: two queries whatever their number."""
    return Device.objects.select_related("heartbeat", *_related).prefetch_related("groups")


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
