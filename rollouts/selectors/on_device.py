"""What one device has to run, and what it said about that."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F, Q

from agent.wire.messages import DEPLOYMENT_KIND
from devices.models import DesiredItem, Device
from rollouts.models import Deployment, Observation, Target


@dataclass(frozen=True, slots=True)
class OnDevice:
    """One deployment on one device: what it shall have, why, and what it said. None where there is nothing."""

    uid: str
    deployment: Deployment | None
    item: DesiredItem | None
    target: Target | None
    observation: Observation | None

    @property
    def name(self) -> str:
        """``namespace/name``; also of a deployment that only the device still knows."""
        return str(self.deployment or f"unknown deployment {self.uid}")

    @property
    def message(self) -> str:
        """The device's own words, else the target's."""
        return (self.observation.message if self.observation else "") or (self.target.message if self.target else "")


def deployments_on(device: Device) -> list[OnDevice]:
    """Everything that the device shall run, is a target of or has reported, by name: four queries, however many."""
    items = {item.key: item for item in DesiredItem.objects.filter(device=device, kind=DEPLOYMENT_KIND)}
    observed = {str(each.deployment_uid): each for each in Observation.objects.filter(device=device)}
    current = Target.objects.filter(
        Q(revision__generation=F("revision__deployment__generation")), device=device
    ).select_related("revision__deployment")
    targets = {str(target.revision.deployment.uid): target for target in current}
    uids = {*items, *observed, *targets}
    known = {str(each.uid): each for each in Deployment.objects.filter(uid__in=uids)}
    rows = [OnDevice(uid, known.get(uid), items.get(uid), targets.get(uid), observed.get(uid)) for uid in uids]
    return sorted(rows, key=lambda row: row.name)
