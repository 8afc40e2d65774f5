"""A fleet for task runs: real rows and services; the devices' updaters are played by the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import yaml
from django.contrib.auth.models import User

from agent.wire import canonical
from agent.wire.messages import APT_FULL_UPGRADE_V1, ATTEMPT_KIND, AttemptReport, AttemptState, JournalEntry
from devices.models import DesiredItem, Device, ReportInbox
from fleet.core import door
from fleet.core.kinds import Done
from tasks import services
from tasks.models import TaskRun
from tasks.selectors import shown_state, targets_of
from tests.integration.rollouts.world import World
from upgrades.models import INBOX_KIND, Attempt


class Tasks(World):
    def __init__(self) -> None:
        super().__init__()
        self._numbers: Counter[int] = Counter()

    def updaters(self, names: Iterable[str], *, canary: bool = False, **labels: str) -> list[Device]:
        """Devices whose updater can do it."""
        rows = self.devices(names, canary=canary, **labels)
        Device.objects.filter(pk__in=[row.pk for row in rows]).update(capabilities=[APT_FULL_UPGRADE_V1])
        return rows

    def taskrun(self, name: str = "upgrade", *, deadline: int = 3600) -> dict[str, Any]:
        return {
            "apiVersion": "fleet.nationtech.io/v1alpha1",
            "kind": "TaskRun",
            "metadata": {"name": name},
            "spec": {
                "allowedGroups": ["lab"],
                "targetSelector": {"matchLabels": {"role": "analyzer"}},
                "deadlineSeconds": deadline,
                "systemUpgradeV1": {},
            },
        }

    def apply_run(self, manifest: dict[str, Any] | None = None, *, actor: User | None = None) -> Done:
        (admitted,) = door.admit(yaml.safe_dump(manifest or self.taskrun()))
        return services.taskrun_apply(manifest=admitted, actor=actor)

    def run(self, manifest: dict[str, Any] | None = None) -> TaskRun:
        """Apply and evaluate until nothing is due."""
        return self.look(TaskRun.objects.get(pk=self.apply_run(manifest).pk))

    def look(self, run: TaskRun) -> TaskRun:
        services.taskrun_evaluate(run_id=run.pk)
        return self.fresh(run)

    def fresh(self, run: TaskRun) -> TaskRun:
        return TaskRun.objects.get(pk=run.pk)

    def shown(self, run: TaskRun) -> dict[str, str]:
        return {target.device_name: shown_state(target) for target in targets_of(self.fresh(run))}

    def message(self, run: TaskRun, device: Device) -> str:
        return str(run.targets.get(device_name=device.name).message)

    def offered(self, device: Device) -> list[str]:
        """Uids of the attempts in this device's desired state."""
        return list(DesiredItem.objects.filter(device=device, kind=ATTEMPT_KIND).values_list("key", flat=True))

    def attempt(self, device: Device) -> Attempt:
        """The newest of this device."""
        return Attempt.objects.filter(device=device).order_by("-pk")[:1].get()

    def reports_attempt(
        self,
        device: Device,
        state: AttemptState,
        *,
        message: str = "",
        step: str = "full-upgrade",
        sequence: int | None = None,
        uid: str = "",
    ) -> None:
        """The device says where its newest attempt stands; each word has a journal entry of its own number."""
        self._numbers[device.pk] += 1
        number = self._numbers[device.pk] if sequence is None else sequence
        said = AttemptReport(
            attempt=uid or str(self.attempt(device).uid),
            state=state,
            step=step,
            message=message,
            entries=[JournalEntry(number=number, step=step, event="began", at=1.0, message=state.value)],
        )
        self.raw_attempts(device, canonical.encode([said]), number)

    def raw_attempts(self, device: Device, body: bytes, sequence: int) -> None:
        ReportInbox.objects.create(device=device, kind=INBOX_KIND, sequence=sequence, received_at=self.now, body=body)

    def says_attempt(self, device: Device, *states: AttemptState, message: str = "") -> None:
        for state in states:
            self.reports_attempt(device, state, message=message)
        services.drain_attempts(limit=1000)
