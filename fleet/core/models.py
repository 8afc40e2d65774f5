"""What every app shares: who did what, what happened by itself, and who holds a lease."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """What a person (or their token) did. Written by services, never changed (ADM-1)."""

    at = models.DateTimeField(db_index=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    actor_name = models.CharField(max_length=150, help_text="Survives the user; 'system' when nobody asked.")
    action = models.CharField(max_length=64, db_index=True)
    object_kind = models.CharField(max_length=64)
    object_name = models.CharField(max_length=320)
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["object_kind", "object_name", "-at"])]
        verbose_name = "audit entry"
        verbose_name_plural = "audit"

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.object_kind} {self.object_name}"


class Event(models.Model):
    """What happened by itself: a device went offline, a rollout converged, a label was ignored."""

    at = models.DateTimeField(db_index=True)
    object_kind = models.CharField(max_length=64)
    object_name = models.CharField(max_length=320)
    reason = models.CharField(max_length=64, db_index=True, help_text="One CamelCase word.")
    message = models.TextField(blank=True, help_text="One sentence.")

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["object_kind", "object_name", "-at"])]

    def __str__(self) -> str:
        return f"{self.object_kind} {self.object_name}: {self.reason}"


class Lease(models.Model):
    """Who may run a periodic job until when; see :mod:`fleet.core.leases`."""

    name = models.CharField(max_length=100, primary_key=True)
    holder = models.CharField(max_length=100)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder}"
