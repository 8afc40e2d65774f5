"""Reads of the shelf that are more than a get."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from devices.models import Device
from fleet.core.errors import NotFound
from releases.models import ShelvedRelease
from upgrades.models import OPEN, Attempt, DesiredAgent, Standing

PATH = "/api/agent/v1/releases/"
#: Of those that keep a release on the shelf, and one more that says that there are others.
SHOWN = 4


def shelf() -> QuerySet[ShelvedRelease]:
    """All, the newest first, with how many devices report the version and how many want the archive: one query."""
    runs = Device.objects.filter(agent_version=OuterRef("version"), architecture=OuterRef("architecture"))
    wanted = DesiredAgent.objects.annotate(archive=KT("spec__sha256")).filter(archive=OuterRef("sha256"))
    found: QuerySet[ShelvedRelease] = ShelvedRelease.objects.annotate(
        running=_number(runs.order_by().values("agent_version")), wanting=_number(wanted.order_by().values("version"))
    )
    return found.order_by("-added_at", "-pk")


def _number(rows: QuerySet[Any, Any]) -> Coalesce:
    """Of rows that all have the same value in the one field that they were reduced to."""
    return Coalesce(Subquery(rows.annotate(number=Count("pk")).values("number")[:1]), 0)


def release_of(sha256: str) -> ShelvedRelease:
    """Raises NotFound when there is none."""
    found = ShelvedRelease.objects.filter(sha256=sha256).first()
    if found is None:
        raise NotFound(f"no release with the digest {sha256[:64]} is on the shelf")
    return found


def target_of(release: ShelvedRelease, origin: str) -> dict[str, Any]:
    """The ``agentUpgrade`` of a device's spec that asks for it; ``origin`` is this control plane's address."""
    return {
        "version": release.version,
        "architecture": release.architecture,
        "url": release.url or f"{origin.rstrip('/')}{PATH}{release.sha256}",
        "maxSize": release.size,
        "sha256": release.sha256,
    }


def devices_of(release: ShelvedRelease) -> list[str]:
    """The first few that shall run this very archive and do not yet, or are at work on it, whatever they shall run."""
    wanted = DesiredAgent.objects.filter(spec__sha256=release.sha256).exclude(state=Standing.CURRENT)
    at_work = Attempt.objects.filter(agent_upgrade__sha256=release.sha256, state__in=OPEN)
    names = {
        *wanted.values_list("device__name", flat=True)[:SHOWN],
        *at_work.values_list("device_name", flat=True)[:SHOWN],
    }
    return [f"device {name}" for name in sorted(names)]
