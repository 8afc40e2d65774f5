"""The shelf: releases of the agent that devices may be asked to run, as files here or as addresses elsewhere.

Nothing here upgrades a device; see ``upgrades`` for one and ``tasks`` for many.
"""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from agent.wire import names


class Architecture(models.TextChoices):
    AMD64 = "amd64", "amd64"
    ARM64 = "arm64", "arm64"


class ShelvedRelease(models.Model):
    """One archive, named by its digest. Either it lies here (``file``), or at ``url``."""

    version = models.CharField(max_length=64, db_index=True, validators=[RegexValidator(names.VERSION)])
    architecture = models.CharField(max_length=16, choices=Architecture)
    sha256 = models.CharField(max_length=64, unique=True, validators=[RegexValidator(names.SHA256)])
    size = models.BigIntegerField(help_text="Bytes; devices fetch no more.")
    file = models.FileField(upload_to="releases", max_length=255, blank=True)
    url = models.CharField(max_length=2048, blank=True, help_text="https:// or oci://, when it does not lie here.")
    notes = models.TextField(blank=True)
    added_at = models.DateTimeField()
    added_by = models.CharField(max_length=150, blank=True, help_text="Survives the user.")

    class Meta:
        ordering = ["-added_at", "-pk"]
        verbose_name = "agent release"
        constraints = [
            models.CheckConstraint(condition=models.Q(file="") ^ models.Q(url=""), name="shelved_release_file_or_url")
        ]

    def __str__(self) -> str:
        return f"{self.version} for {self.architecture}"
