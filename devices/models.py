"""Devices, how they are let in, and the two mailboxes between them and the apps above.

Nothing here knows what a deployment is. Heartbeats have a table of their own, so that a report never waits for a row
that has a state.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from agent.wire import names


class Connectivity(models.TextChoices):
    """What follows from the last report and the thresholds in settings (DEV-5)."""

    NEVER = "never", "never reported"
    ONLINE = "online", "online"
    STALE = "stale", "stale"
    OFFLINE = "offline", "offline"


class Device(models.Model):
    """One enrolled device.

    ``labels`` is what selectors see: reported labels, operator's labels over them, ``device-id`` and ``canary`` by us
    alone (TSK-1). It is kept by ``services.device_labels_refresh`` whenever one of its sources changes.
    """

    name = models.CharField(
        "device id",
        max_length=63,
        unique=True,
        validators=[RegexValidator(names.DNS_LABEL)],
        help_text="RFC 1123 label.",
    )
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    enrolled_at = models.DateTimeField()
    canary = models.BooleanField(default=False, db_index=True, help_text="Goes first in every rollout that it is in.")
    operator_labels = models.JSONField(default=dict, blank=True)
    reported_labels = models.JSONField(default=dict, blank=True, editable=False)
    labels = models.JSONField(default=dict, editable=False)
    capabilities = models.JSONField(default=list, editable=False)
    architecture = models.CharField(max_length=512, blank=True, editable=False)
    os = models.CharField("operating system", max_length=512, blank=True, editable=False)
    kernel = models.CharField(max_length=512, blank=True, editable=False)
    boot_id = models.CharField(max_length=512, blank=True, editable=False)
    agent_version = models.CharField(max_length=512, blank=True, editable=False)
    updater_version = models.CharField(max_length=512, blank=True, editable=False)
    podman_version = models.CharField(max_length=512, blank=True, editable=False)
    problems = models.JSONField(default=list, editable=False, help_text="What the device says is wrong with itself.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class DeviceGroup(models.Model):
    """A group of the database group source (DEP-7). Another source may know groups that are not here."""

    name = models.CharField(max_length=253, unique=True, validators=[RegexValidator(names.DNS_SUBDOMAIN)])
    devices = models.ManyToManyField(Device, related_name="groups", blank=True)
    deployers = models.ManyToManyField(
        "auth.Group",
        related_name="deployable_groups",
        blank=True,
        help_text="Whose members may name this group in allowedGroups.",
    )

    class Meta:
        ordering = ["name"]
        permissions = [("deploy_to_any_group", "Can deploy to any group")]

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """When a device was last heard; written in bulk by the drain (DEV-5)."""

    device = models.OneToOneField(Device, primary_key=True, on_delete=models.CASCADE)
    last_seen = models.DateTimeField(null=True, db_index=True)
    sequence = models.BigIntegerField(default=0, help_text="Of the newest report that was taken in.")
    connectivity = models.CharField(max_length=8, choices=Connectivity, default=Connectivity.NEVER, db_index=True)
    connectivity_since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.device_id}: {self.connectivity}"


class Credential(models.Model):
    """A device's secret, as the SHA-256 of a random token: found by index, never readable (DEV-1)."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="credentials")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"credential of device {self.device_id}"


class EnrolmentToken(models.Model):
    """Lets devices in: limited in time and number, and may grant labels and groups (DEV-1, case E1)."""

    name = models.CharField(max_length=100, unique=True)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, editable=False)
    expires_at = models.DateTimeField()
    use_limit = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    labels = models.JSONField(default=dict, blank=True, help_text="Operator's labels given to each device.")
    groups = models.ManyToManyField(DeviceGroup, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(uses__lte=models.F("use_limit")), name="enrolment_token_use_limit"
            ),
            models.CheckConstraint(condition=models.Q(use_limit__gte=1), name="enrolment_token_some_use"),
        ]

    def __str__(self) -> str:
        return self.name


class ReenrolmentPermit(models.Model):
    """An operator's reset: the next enrolment under this name is the same device again (DEV-2)."""

    device = models.OneToOneField(Device, primary_key=True, on_delete=models.CASCADE)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"reset of device {self.device_id}"


# The mailbox downwards -----------------------------------------------------------------------------------------------


class DesiredHead(models.Model):
    """What a poll reads: the version of a device's desired state, one row (AGT-9)."""

    device = models.OneToOneField(Device, primary_key=True, on_delete=models.CASCADE)
    epoch = models.PositiveIntegerField(default=1)
    version = models.BigIntegerField(default=1)

    def __str__(self) -> str:
        return f"{self.device_id}: {self.epoch}.{self.version}"


class DesiredDocument(models.Model):
    """What an item's hash stands for; a thousand devices share one."""

    hash = models.CharField(max_length=64, primary_key=True)
    body = models.BinaryField(help_text="Canonical JSON.")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.hash


class DesiredItem(models.Model):
    """One thing that a device shall have; with ``remove``, shall prove to have no longer."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="desired_items")
    kind = models.CharField(max_length=32)
    key = models.CharField(max_length=64)
    version = models.BigIntegerField()
    document = models.ForeignKey(DesiredDocument, null=True, on_delete=models.PROTECT)
    remove = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["device", "kind", "key"], name="desired_item_once")]
        indexes = [models.Index(fields=["kind", "key", "remove"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.key} for {self.device_id}"


# The mailbox upwards -------------------------------------------------------------------------------------------------


class ReportInbox(models.Model):
    """One part of a report as it came, until the app that owns its kind has taken it in.

    A report becomes a row per kind in one INSERT; it is acknowledged after that is committed (OPS-2).
    """

    device = models.ForeignKey(Device, on_delete=models.CASCADE)
    kind = models.CharField(max_length=32)
    sequence = models.BigIntegerField()
    received_at = models.DateTimeField()
    body = models.BinaryField()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["kind", "id"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.sequence} of {self.device_id}"
