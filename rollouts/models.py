"""Deployments, their revisions, and where each revision stands on each device.

Three kinds of rows, three writers: a person's intent (Deployment, Revision.spec), the decisions (Revision.phase,
Target.state), and what devices said (Observation).
"""

from __future__ import annotations

import uuid
from datetime import datetime

from django.core.validators import RegexValidator
from django.db import models
from django_fsm import ConcurrentTransitionMixin, FSMField, transition

from agent.wire import names
from agent.wire.messages import DeploymentState
from fleet.targeting.models import AbstractTarget

#: Rows of this kind in the inbox are ours: canonical JSON of ``list[DeploymentReport]``, always a device's whole list.
INBOX_KIND = "deployments"


class Life(models.TextChoices):
    ACTIVE = "active", "active"
    DELETING = "deleting", "deleting"


class Phase(models.TextChoices):
    """The phase of a revision (DEP-15); ``Deleting`` is the deployment's and shown in its place."""

    PENDING = "Pending", "Pending"
    CANARY = "Canary", "Canary"
    RELEASING = "Releasing", "Releasing"
    CONVERGED = "Converged", "Converged"
    FAILED = "Failed", "Failed"
    SUPERSEDED = "Superseded", "Superseded"
    CANCELLED = "Cancelled", "Cancelled"

    @property
    def colour(self) -> str:
        """The badge's colour in the admin."""
        return PHASE_COLOURS[self.value]


#: What is shown in place of a phase while the deployment is being removed.
DELETING = "Deleting"
PHASE_COLOURS: dict[str, str] = {
    Phase.PENDING.value: "warning",
    Phase.CANARY.value: "info",
    Phase.RELEASING.value: "info",
    Phase.CONVERGED.value: "success",
    Phase.FAILED.value: "danger",
    Phase.SUPERSEDED.value: "default",
    Phase.CANCELLED.value: "default",
    DELETING: "warning",
}

#: Phases in which the evaluation has something to do. A converged revision is watched too: convergence is withdrawn
#: when it ceases (AGT-6).
LIVE_PHASES = (Phase.PENDING, Phase.CANARY, Phase.RELEASING, Phase.CONVERGED, Phase.FAILED)
#: Phases after the freeze.
FROZEN_PHASES = (Phase.CANARY, Phase.RELEASING, Phase.CONVERGED, Phase.FAILED)


class Deployment(ConcurrentTransitionMixin, models.Model):
    """A named, wanted state of a part of the fleet. Its row ends when its removal is proven on all devices (DEP-14)."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    namespace = models.CharField(max_length=63, validators=[RegexValidator(names.DNS_LABEL)])
    name = models.CharField(max_length=253, validators=[RegexValidator(names.DNS_SUBDOMAIN)])
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    generation = models.PositiveIntegerField(default=1, help_text="Of the newest revision (DEP-9).")
    life = FSMField(default=Life.ACTIVE, choices=Life.choices, protected=True, db_index=True)
    created_at = models.DateTimeField()
    deleting_since = models.DateTimeField(null=True)
    removal_message = models.TextField(blank=True, help_text="While deleting: what it waits for, in one sentence.")

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="deployment_name_once")]
        permissions = [
            ("retarget_deployment", "Can retarget a deployment"),
            ("end_deployment", "Can end a rollout"),
            ("forget_device_deployment", "Can give up a device that a deletion waits for"),
            ("read_logs", "Can ask devices for the logs of containers"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @transition(field=life, source=Life.ACTIVE, target=Life.DELETING)
    def mark_deleting(self, now: datetime) -> None:
        self.deleting_since = now


class Revision(ConcurrentTransitionMixin, models.Model):
    """One generation of a deployment's spec, with the target set frozen for it.

    Status columns (counts, message, conditions) are written by the evaluation only, so that admin, API and CLI read
    the same sentence (DEP-16) without looking at the targets.
    """

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="revisions")
    generation = models.PositiveIntegerField()
    spec = models.JSONField()
    spec_hash = models.CharField(max_length=64)
    document = models.ForeignKey(
        "devices.DesiredDocument", on_delete=models.PROTECT, help_text="What released devices are told."
    )
    pins = models.JSONField(default=dict, help_text="What tags stand for, see rollouts.images (DEP-18).")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150, blank=True)
    frozen_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True, help_text="When non-canaries were released.")
    phase = FSMField(default=Phase.PENDING, choices=Phase.choices, protected=True, db_index=True)
    phase_since = models.DateTimeField()
    matched = models.PositiveIntegerField(default=0)
    released = models.PositiveIntegerField(default=0)
    converged = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    offline = models.PositiveIntegerField(default=0)
    latecomers = models.PositiveIntegerField(default=0, help_text="Match the selector but came after the freeze.")
    message = models.TextField(blank=True, help_text="What it waits for, in one sentence; empty when done.")
    conditions = models.JSONField(default=list)
    evaluated_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-generation"]
        constraints = [models.UniqueConstraint(fields=["deployment", "generation"], name="revision_generation_once")]

    def __str__(self) -> str:
        return f"{self.deployment_id} generation {self.generation}"

    @transition(field=phase, source=Phase.PENDING, target=Phase.CANARY)
    def begin_canary(self, now: datetime) -> None:
        self.frozen_at = self.phase_since = now

    @transition(
        field=phase, source=[Phase.PENDING, Phase.CANARY, Phase.FAILED, Phase.CONVERGED], target=Phase.RELEASING
    )
    def begin_releasing(self, now: datetime) -> None:
        self.frozen_at = self.frozen_at or now
        self.phase_since = now

    @transition(field=phase, source=[Phase.FAILED], target=Phase.CANARY)
    def resume_canary(self, now: datetime) -> None:
        self.phase_since = now

    @transition(field=phase, source=[Phase.CANARY, Phase.RELEASING, Phase.FAILED], target=Phase.CONVERGED)
    def mark_converged(self, now: datetime) -> None:
        self.phase_since = now

    @transition(field=phase, source=[Phase.CANARY, Phase.RELEASING, Phase.CONVERGED], target=Phase.FAILED)
    def mark_failed(self, now: datetime) -> None:
        self.phase_since = now

    @transition(field=phase, source=list(LIVE_PHASES), target=Phase.SUPERSEDED)
    def supersede(self, now: datetime) -> None:
        self.phase_since = now

    @transition(field=phase, source=list(LIVE_PHASES), target=Phase.CANCELLED)
    def cancel(self, now: datetime) -> None:
        self.phase_since = now


class Target(AbstractTarget):
    """One device in a revision's frozen set."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="targets")
    device = models.ForeignKey("devices.Device", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["-canary", "device_name"]
        constraints = [models.UniqueConstraint(fields=["revision", "device_uid"], name="target_once")]
        indexes = [models.Index(fields=["revision", "state", "canary"])]

    def __str__(self) -> str:
        return f"{self.device_name}: {self.state}"


class LastReport(models.Model):
    """Which report of a device about its deployments was taken in last.

    The sequence says what is newer (ADR 4), the time how fresh everything is that the device said (DEP-11): a report
    always lists all its deployments, so an unchanged one costs this row only.
    """

    device = models.OneToOneField(
        "devices.Device", primary_key=True, on_delete=models.CASCADE, related_name="deployments_report"
    )
    sequence = models.BigIntegerField()
    reported_at = models.DateTimeField(help_text="When the control plane received it.")

    def __str__(self) -> str:
        return f"{self.sequence} of {self.device_id}"


class Observation(models.Model):
    """What a device last said about one deployment, also of an older revision or one it shall no longer have.

    ``deployment_uid`` is no foreign key: a device may report what the control plane no longer knows.
    """

    device = models.ForeignKey("devices.Device", on_delete=models.CASCADE, related_name="observations")
    deployment_uid = models.UUIDField()
    revision = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=[(state.value, state.value) for state in DeploymentState])
    message = models.TextField(blank=True)
    images = models.JSONField(default=dict)
    since = models.DateTimeField(null=True, help_text="By the device's clock.")
    reported_at = models.DateTimeField(help_text="When the control plane received the first report that said so.")

    class Meta:
        # The only way in besides the device: with a second index that begins with the deployment, PostgreSQL takes the
        # wrong one while its statistics are young, and absorbing 10,000 targets becomes quadratic.
        constraints = [models.UniqueConstraint(fields=["deployment_uid", "device"], name="observation_once")]

    def __str__(self) -> str:
        return f"{self.deployment_uid} on {self.device_id}: {self.state}"


class PhaseChange(models.Model):
    """The history of a revision's phases."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="history")
    at = models.DateTimeField()
    source = models.CharField(max_length=16)
    target = models.CharField(max_length=16)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


class LogState(models.TextChoices):
    """Where a request for a log stands; ``waiting`` is the only one that is not final."""

    WAITING = "waiting", "waiting for the device"
    ANSWERED = "answered", "answered"
    FAILED = "failed", "the device could not"
    EXPIRED = "expired", "no answer in time"


class LogRequest(ConcurrentTransitionMixin, models.Model):
    """Somebody wants to see the end of a container's log on one device (AGT-16).

    The row is deleted some time after its end, because a log may say anything; that it was asked for stays audited.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="log_requests")
    device = models.ForeignKey("devices.Device", on_delete=models.CASCADE, related_name="+")
    container = models.CharField(max_length=63)
    lines = models.PositiveIntegerField()
    requested_at = models.DateTimeField()
    requested_by = models.CharField(max_length=150, blank=True)
    state = FSMField(default=LogState.WAITING, choices=LogState.choices, protected=True, db_index=True)
    ended_at = models.DateTimeField(null=True)
    text = models.TextField(blank=True)
    is_cut = models.BooleanField(
        default=False, help_text="The log's last lines were too long and are cut at the front."
    )
    problem = models.TextField(blank=True, help_text="Why there is no text, in one sentence.")

    class Meta:
        ordering = ["-requested_at", "-pk"]
        default_permissions = ()

    def __str__(self) -> str:
        return f"log of {self.container} on {self.device_id}: {self.state}"

    @transition(field=state, source=LogState.WAITING, target=LogState.ANSWERED)
    def note_answer(self, now: datetime) -> None:
        self.ended_at = now

    @transition(field=state, source=LogState.WAITING, target=LogState.FAILED)
    def note_problem(self, now: datetime) -> None:
        self.ended_at = now

    @transition(field=state, source=LogState.WAITING, target=LogState.EXPIRED)
    def note_expiry(self, now: datetime) -> None:
        self.ended_at = now
