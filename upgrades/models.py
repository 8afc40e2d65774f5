"""Attempts of a device's updater and their journals: what was offered, and what the device said of it.

Nothing here knows why a device upgrades; the app above makes the attempts.
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
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    REFUSED = "refused", "refused"


#: A device in one of these is taken: nobody else may start an attempt there (TSK-5).
OPEN = (State.OFFERED, State.ACCEPTED, State.RUNNING, State.REPAIR_REQUIRED)
#: The device has begun; nothing stops it now.
BEGUN = (State.ACCEPTED, State.RUNNING)
#: What counts as failed, even if root may still repair it, or the device comes back after all.
UNSUCCESSFUL = (State.FAILED, State.REFUSED, State.REPAIR_REQUIRED, State.GIVEN_UP)


class Attempt(models.Model):
    """One run of one executor on one device. Name and uid of the device survive it, so that history stays readable."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    device = models.ForeignKey("devices.Device", null=True, on_delete=models.SET_NULL, related_name="attempts")
    device_name = models.CharField(max_length=63)
    executor = models.CharField(max_length=64)
    title = models.CharField(max_length=320, help_text="What it is for, in words: TaskRun namespace/name.")
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
