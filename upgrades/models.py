"""Attempts of a device's updater and their journals: what was offered, and what the device said of it.

Why a device upgrades its operating system is known to the app above, which makes those attempts; the agent that a
device shall run is known here.
"""

from __future__ import annotations

import uuid

from django.db import models

#: Rows of this kind in the inbox are ours: canonical JSON of ``list[AttemptReport]``.
INBOX_KIND = "attempts"


class State(models.TextChoices):
    """Where an attempt stands; all but offered, withdrawn and given up are a device's words.

    See :mod:`upgrades.policy` for the order.
    """

    OFFERED = "offered", "offered"
    WITHDRAWN = "withdrawn", "withdrawn before the device had begun"
    ACCEPTED = "accepted", "accepted"
    RUNNING = "running", "running"
    GIVEN_UP = "given-up", "given up by an operator"
    REPAIR_REQUIRED = "repair-required", "repair required"
    ROLLBACK_FAILED = "rollback-failed", "neither the new agent nor the one before it could be started"
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    REFUSED = "refused", "refused"


#: Only root, on the device itself, brings it on (SYS-6, UPG-4).
NEEDS_ROOT = (State.REPAIR_REQUIRED, State.ROLLBACK_FAILED)
#: A device in one of these is taken: nobody else may start an attempt there (TSK-5).
OPEN = (State.OFFERED, State.ACCEPTED, State.RUNNING, *NEEDS_ROOT)
#: The device has begun; nothing stops it now.
BEGUN = (State.ACCEPTED, State.RUNNING)
#: What counts as failed, even if root may still repair it, or the device comes back after all.
UNSUCCESSFUL = (State.FAILED, State.REFUSED, *NEEDS_ROOT, State.GIVEN_UP)


class Attempt(models.Model):
    """One run of one executor on one device. Name and uid of the device survive it, so that history stays readable."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    device = models.ForeignKey("devices.Device", null=True, on_delete=models.SET_NULL, related_name="attempts")
    device_name = models.CharField(max_length=63)
    executor = models.CharField(max_length=64)
    title = models.CharField(max_length=320, help_text="What it is for, in words: TaskRun namespace/name.")
    agent_upgrade = models.JSONField(null=True, help_text="The agent that was asked for, of agentUpgradeV1 (UPG-1).")
    state = models.CharField(max_length=16, choices=State, default=State.OFFERED, db_index=True)
    step = models.CharField(max_length=512, blank=True)
    message = models.TextField(blank=True)
    sequence = models.BigIntegerField(default=0, help_text="Of the report that step and message are from.")
    begin_until = models.DateTimeField(help_text="After it nothing may begin (TSK-4).")
    offered_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, help_text="When the control plane heard that it had begun.")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        permissions = [("give_up_attempt", "Can give up an attempt whose device is not heard any more")]

    def __str__(self) -> str:
        return f"{self.title} on {self.device_name}"


class JournalEntry(models.Model):
    """A line of an attempt's journal as the device wrote it. Append-only; the number makes a second copy harmless."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="journal")
    number = models.PositiveIntegerField()
    step = models.CharField(max_length=512)
    event = models.CharField(max_length=512)
    at = models.DateTimeField(null=True, help_text="By the device's clock.")
    boot_id = models.CharField(max_length=512, blank=True)
    message = models.TextField(blank=True)
    received_at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["attempt", "number"], name="journal_number_once")]

    def __str__(self) -> str:
        return f"{self.number} {self.step} {self.event}"


class Standing(models.TextChoices):
    """Where a wanted agent stands; it follows from device and attempt, see :mod:`upgrades.policy`."""

    CURRENT = "current", "runs it"
    WAITING = "waiting", "waits"
    UNABLE = "unable", "cannot be upgraded as it is"
    UNDER_WAY = "under-way", "under way"
    FAILED = "failed", "failed"


class DesiredAgent(models.Model):
    """The agent that a device shall run (UPG-1), and where that stands. A device without a row keeps what it has."""

    device = models.OneToOneField("devices.Device", on_delete=models.CASCADE, related_name="desired_agent")
    spec = models.JSONField(help_text="The agentUpgrade of the device's spec.")
    spec_hash = models.CharField(max_length=64)
    version = models.CharField(max_length=64, db_index=True, help_text="Of the spec, to compare with the reported one.")
    generation = models.PositiveIntegerField(default=1, help_text="Grows with each change of the spec.")
    set_at = models.DateTimeField()
    set_by = models.CharField(max_length=150, blank=True)
    attempt = models.ForeignKey(
        Attempt, null=True, on_delete=models.SET_NULL, related_name="+", help_text="The last one for this very target."
    )
    state = models.CharField(max_length=16, choices=Standing, default=Standing.WAITING, db_index=True)
    state_since = models.DateTimeField()
    message = models.TextField(blank=True, help_text="What it waits for or how it ended, in one sentence.")

    class Meta:
        ordering = ["device__name"]
        verbose_name = "agent upgrade"

    def __str__(self) -> str:
        return f"agent {self.version} on {self.device}"
