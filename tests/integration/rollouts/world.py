"""A small fleet for tests: real rows, the real services, an inbox that is filled as the report view fills it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import yaml
from django.contrib.auth.models import User

from agent.wire import canonical
from agent.wire.messages import DEPLOYMENT_KIND, DeploymentDocument, DeploymentReport, DeploymentState
from devices.models import (
    Connectivity,
    DesiredHead,
    DesiredItem,
    Device,
    DeviceGroup,
    Heartbeat,
    ReportInbox,
)
from fleet.core import door
from rollouts import selectors, services
from rollouts.models import INBOX_KIND, Deployment, Revision, Target

START = datetime(2026, 12, 1, 14, 0, tzinfo=UTC)
STATES = {
    "converged": DeploymentState.CONVERGED,
    "failed": DeploymentState.FAILED,
    "progressing": DeploymentState.PROGRESSING,
    "removed": DeploymentState.REMOVED,
}


class World:
    """Its clock stands still until told (:meth:`later`)."""

    def __init__(self) -> None:
        self.now = START
        self._sequences: Counter[int] = Counter()

    # Devices ---------------------------------------------------------------------------------------------------------

    def later(self, **amount: float) -> None:
        self.now += timedelta(**amount)

    def group(self, name: str = "lab") -> DeviceGroup:
        return DeviceGroup.objects.get_or_create(name=name)[0]

    def device(self, name: str, *, canary: bool = False, groups: Iterable[str] = ("lab",), **labels: str) -> Device:
        return self.devices([name], canary=canary, groups=groups, **labels)[0]

    def devices(
        self, names: Iterable[str], *, canary: bool = False, groups: Iterable[str] = ("lab",), **labels: str
    ) -> list[Device]:
        rows = Device.objects.bulk_create(
            Device(
                name=name,
                enrolled_at=self.now,
                canary=canary,
                labels={"device-id": name, "canary": str(canary).lower(), **(labels or {"role": "analyzer"})},
            )
            for name in names
        )
        DesiredHead.objects.bulk_create(DesiredHead(device=row) for row in rows)
        Heartbeat.objects.bulk_create(
            Heartbeat(device=row, last_seen=self.now, connectivity=Connectivity.ONLINE, connectivity_since=self.now)
            for row in rows
        )
        for group in groups:
            self.group(group).devices.add(*rows)
        return rows

    def relabel(self, device: Device, **labels: str) -> None:
        Device.objects.filter(pk=device.pk).update(labels={"device-id": device.name, **labels})

    def goes(self, device: Device, connectivity: Connectivity) -> None:
        Heartbeat.objects.filter(device=device).update(connectivity=connectivity, connectivity_since=self.now)

    def document(self, device: Device, deployment: Deployment) -> DeploymentDocument:
        """What this device is told now; there must be something."""
        item = DesiredItem.objects.get(device=device, kind=DEPLOYMENT_KIND, key=str(deployment.uid))
        assert item.document is not None
        return msgspec.json.decode(bytes(item.document.body), type=DeploymentDocument)

    def told(self, device: Device, deployment: Deployment) -> int | None:
        """The generation that this device shall run now; 0 for "remove", None for nothing."""
        item = DesiredItem.objects.filter(device=device, kind=DEPLOYMENT_KIND, key=str(deployment.uid)).first()
        if item is None:
            return None
        return 0 if item.document is None else self.document(device, deployment).revision

    # Deployments -----------------------------------------------------------------------------------------------------

    def manifest(
        self,
        name: str = "api",
        *,
        image: str = "registry.example.com/api:1.0",
        groups: Iterable[str] = ("lab",),
        labels: dict[str, str] | None = None,
        **selector: str,
    ) -> dict[str, Any]:
        return {
            "apiVersion": "fleet.nationtech.io/v1alpha1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "allowedGroups": list(groups),
                "targetSelector": {"matchLabels": selector or {"role": "analyzer"}},
                "rollout": {"strategy": "Immediate"},
                "score": {"type": "PodmanV0", "data": {"services": [{"name": name, "image": image}]}},
            },
        }

    def apply(
        self, manifest: dict[str, Any] | None = None, *, actor: User | None = None, dry_run: bool = False
    ) -> services.Applied:
        (admitted,) = door.admit(yaml.safe_dump(manifest or self.manifest()))
        return services.deployment_apply(manifest=admitted, actor=actor, dry_run=dry_run)

    def rollout(self, manifest: dict[str, Any] | None = None) -> Deployment:
        """Apply and evaluate."""
        deployment = self.apply(manifest).deployment
        assert deployment is not None
        self.evaluate(deployment)
        return deployment

    def revision(self, deployment: Deployment) -> Revision:
        return selectors.current_revision(Deployment.objects.get(pk=deployment.pk))

    def evaluate(self, deployment: Deployment) -> Revision:
        services.revision_evaluate(revision_id=self.revision(deployment).pk)
        return self.revision(deployment)

    def target(self, deployment: Deployment, device: Device) -> Target:
        return self.revision(deployment).targets.get(device_name=device.name)

    def states(self, deployment: Deployment) -> dict[str, str]:
        return dict(self.revision(deployment).targets.values_list("device_name", "state"))

    # Reports ---------------------------------------------------------------------------------------------------------

    def says(
        self,
        device: Device,
        deployment: Deployment,
        state: str,
        message: str = "",
        *,
        revision: int | None = None,
        sequence: int | None = None,
        images: dict[str, str] | None = None,
    ) -> None:
        """The device's report arrives: a snapshot that lists this deployment only."""
        generation = Deployment.objects.get(pk=deployment.pk).generation if revision is None else revision
        report = DeploymentReport(
            uid=str(deployment.uid),
            revision=generation,
            state=STATES[state],
            message=message,
            images={"api": "sha256:1"} if images is None else images,
        )
        self.reports(device, [report], sequence=sequence)

    def reports(self, device: Device, reports: list[DeploymentReport], *, sequence: int | None = None) -> None:
        self.raw(device, canonical.encode(reports), sequence=sequence)

    def raw(self, device: Device, body: bytes, *, sequence: int | None = None) -> None:
        if sequence is None:
            self._sequences[device.pk] += 1
            sequence = self._sequences[device.pk]
        ReportInbox.objects.create(device=device, kind=INBOX_KIND, sequence=sequence, received_at=self.now, body=body)

    def drain(self) -> int:
        return services.drain_deployments(limit=1000)
