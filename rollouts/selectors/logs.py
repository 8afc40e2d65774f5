"""Requests for logs: where a log may come from, and what a request waits for (AGT-16)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from agent.wire.messages import DEPLOYMENT_KIND
from devices.models import DesiredItem, Device
from fleet.core.errors import NotFound
from fleet.targeting import wording
from rollouts.models import Deployment, LogRequest, LogState, Observation
from rollouts.selectors.lists import current_revision
from rollouts.selectors.matching import spec_of

#: Devices that are offered by name; a deployment may be on ten thousand.
DEVICES_NAMED = 50


@dataclass(frozen=True, slots=True)
class LogSources:
    """The containers of the newest revision, services first, and the first few devices that were told of it."""

    containers: list[str]
    services: list[str]
    devices: list[str]


def log_sources(deployment: Deployment) -> LogSources:
    """Where a log of this deployment may come from: two queries."""
    data = spec_of(current_revision(deployment)).score.data
    services = [each.name for each in data.services]
    init = [data.init_container.name] if data.init_container else []
    names = holding_devices(deployment).order_by("name").values_list("name", flat=True)
    return LogSources([*services, *init], services, list(names[:DEVICES_NAMED]))


def holding_devices(deployment: Deployment) -> QuerySet[Device]:
    """Devices that were told of this deployment and have not proven its removal."""
    told = DesiredItem.objects.filter(kind=DEPLOYMENT_KIND, key=str(deployment.uid))
    return Device.objects.filter(pk__in=told.values("device"))


def containers_on(deployment: Deployment, device: Device) -> set[str]:
    """Containers of this deployment that the device said to have, also of an older revision."""
    said = Observation.objects.filter(deployment_uid=deployment.uid, device=device).values_list("images", flat=True)
    return set(said.first() or ())


def log_request(deployment: Deployment, uid: str) -> LogRequest:
    """One request of this deployment, with its device.

    Raises:
        NotFound: there is none, or not any more.
    """
    found: LogRequest | None = None
    with suppress(ValueError):
        requests = LogRequest.objects.select_related("device__heartbeat", "deployment")
        found = requests.filter(deployment=deployment, uid=UUID(uid)).first()
    if found is None:
        raise NotFound(f"there is no request {uid[:40]!r} for a log of {deployment}; answers are kept for an hour")
    return found


def log_sentence(request: LogRequest, now: datetime) -> str:
    """What a request waits for, or why there is no text; empty when there is (DEP-16)."""
    if request.state != LogState.WAITING:
        return request.problem
    reason = silence(request.device, now)
    name = request.device.name
    return f"Waiting for {name}: {reason}" if reason else f"Waiting for {name} to send the log of {request.container}"


def silence(device: Device, now: datetime) -> str:
    """Why a device says nothing, as the rest of a sentence; empty when it is heard of."""
    heartbeat = getattr(device, "heartbeat", None)
    if heartbeat is None or heartbeat.connectivity in ("online", "stale"):
        return ""
    blocker = wording.Blocker(device.name, connectivity=heartbeat.connectivity, since=heartbeat.connectivity_since)
    return wording.why(blocker, now)
