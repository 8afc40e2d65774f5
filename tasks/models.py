"""Task runs: one executor, once, on a frozen set of devices. What the devices do is in ``upgrades``."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.core.validators import RegexValidator
from django.db import models
from django_fsm import ConcurrentTransitionMixin, FSMField, transition

from agent.wire import names
from fleet.targeting.models import AbstractTarget


class Kind(models.TextChoices):
    """What a run is a run of: each is a kind of manifest (TSK-1, UPG-10, ADR 12)."""

    TASK_RUN = "TaskRun", "task run"
    AGENT_RELEASE = "AgentRelease", "agent release"


class Phase(models.TextChoices):
    """Where a run stands. The last three are final: a task run is one-shot (TSK-3)."""

    PENDING = "Pending", "Pending"
    CANARY = "Canary", "Canary"
    RUNNING = "Running", "Running"
    COMPLETED = "Completed", "Completed"
    FAILED = "Failed", "Failed"
    CANCELLED = "Cancelled", "Cancelled"


LIVE_PHASES = (Phase.PENDING, Phase.CANARY, Phase.RUNNING)


class TaskRun(ConcurrentTransitionMixin, models.Model):
    """One run of a task, or one agent version for a set of devices. Its row stays after a deletion, as history (TSK-7).

    What is frozen, gated and released is the same for both kinds; the name is free again after a deletion.
    """

    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.TASK_RUN)
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    namespace = models.CharField(max_length=63, validators=[RegexValidator(names.DNS_LABEL)])
    name = models.CharField(max_length=253, validators=[RegexValidator(names.DNS_SUBDOMAIN)])
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    spec = models.JSONField()
    spec_hash = models.CharField(max_length=64)
    executor = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150, blank=True)
    schedule = models.ForeignKey("tasks.TaskSchedule", null=True, on_delete=models.SET_NULL, related_name="runs")
    deadline_at = models.DateTimeField(db_index=True, help_text="After it nothing new starts (TSK-4).")
    deleted_at = models.DateTimeField(null=True)
    frozen_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True, help_text="When devices that are no canary were released.")
    phase = FSMField(default=Phase.PENDING, choices=Phase.choices, protected=True, db_index=True)
    phase_since = models.DateTimeField()
    matched = models.PositiveIntegerField(default=0)
    released = models.PositiveIntegerField(default=0)
    completed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    not_started = models.PositiveIntegerField(default=0)
    message = models.TextField(blank=True, help_text="What it waits for or how it ended, in one sentence.")
    conditions = models.JSONField(default=list)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "namespace", "name"], condition=models.Q(deleted_at=None), name="taskrun_name_once"
            )
        ]
        permissions = [("end_taskrun", "Can end a task run")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @transition(field=phase, source=Phase.PENDING, target=Phase.CANARY)
    def begin_canary(self, now: datetime) -> None:
        self.frozen_at = self.phase_since = now

    @transition(field=phase, source=[Phase.PENDING, Phase.CANARY], target=Phase.RUNNING)
    def begin_running(self, now: datetime) -> None:
        self.frozen_at = self.frozen_at or now
        self.phase_since = now

    @transition(field=phase, source=[Phase.CANARY, Phase.RUNNING], target=Phase.COMPLETED)
    def note_completion(self, now: datetime) -> None:
        self.phase_since = now

    @transition(field=phase, source=list(LIVE_PHASES), target=Phase.FAILED)
    def note_failure(self, now: datetime) -> None:
        self.phase_since = now

    @transition(field=phase, source=list(LIVE_PHASES), target=Phase.CANCELLED)
    def note_cancellation(self, now: datetime) -> None:
        self.phase_since = now


class AgentRelease(TaskRun):
    """The runs of that kind, under their own name: for permissions and for the admin (UPG-10)."""

    class Meta:
        proxy = True
        verbose_name = "agent rollout"
        permissions = [("end_agentrelease", "Can end an agent rollout")]


class TaskTarget(AbstractTarget):
    """One device in a run's frozen set; ``converged`` stands for completed, ``ended`` for not started."""

    run = models.ForeignKey(TaskRun, on_delete=models.CASCADE, related_name="targets")
    device = models.ForeignKey("devices.Device", null=True, on_delete=models.SET_NULL, related_name="+")
    attempt = models.OneToOneField("upgrades.Attempt", null=True, on_delete=models.SET_NULL, related_name="target")

    class Meta:
        ordering = ["-canary", "device_name"]
        constraints = [models.UniqueConstraint(fields=["run", "device_uid"], name="task_target_once")]
        indexes = [models.Index(fields=["run", "state", "canary"])]

    def __str__(self) -> str:
        return f"{self.device_name}: {self.state}"


class Chapter(models.Model):
    """The history of a run: changes of its phase, and releases."""

    run = models.ForeignKey(TaskRun, on_delete=models.CASCADE, related_name="history")
    at = models.DateTimeField()
    event = models.CharField(max_length=16)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.event} {self.message}"


class TaskSchedule(models.Model):
    """Makes runs of one task at the times of a cron expression (TSK-9); its runs outlive it as history."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    namespace = models.CharField(max_length=63, validators=[RegexValidator(names.DNS_LABEL)])
    name = models.CharField(max_length=253, validators=[RegexValidator(names.DNS_SUBDOMAIN)])
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    spec = models.JSONField()
    spec_hash = models.CharField(max_length=64)
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150, blank=True)
    crontab = models.OneToOneField("django_celery_beat.CrontabSchedule", on_delete=models.PROTECT, related_name="+")
    suspended = models.BooleanField(default=False)
    next_at = models.DateTimeField(null=True, db_index=True, help_text="The next time; none while it is suspended.")
    last_at = models.DateTimeField(null=True, help_text="The last time that came, whatever came of it.")
    last_run = models.ForeignKey(TaskRun, null=True, on_delete=models.SET_NULL, related_name="+")
    message = models.TextField(blank=True, help_text="What came of the last time, in one sentence.")

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="taskschedule_name_once")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
