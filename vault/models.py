"""Secrets of a namespace: names that people see, values that nobody sees again (AGT-10, ADR 7).

Nothing here knows devices or deployments. Who may have a value is decided above; see ``rollouts.selectors.secrets``.
"""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from agent.wire import names


class Secret(models.Model):
    """A named set of values. With a ``registry`` it is also the login for that image registry (AGT-15)."""

    namespace = models.CharField(max_length=63, validators=[RegexValidator(names.DNS_LABEL)])
    name = models.CharField(max_length=63, validators=[RegexValidator(names.SECRET_PART)])
    registry = models.CharField(max_length=255, blank=True, help_text="host or host:port, in lower case.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    updated_by = models.CharField(max_length=150, help_text="Survives the user.")

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["namespace", "name"], name="secret_name_once"),
            models.UniqueConstraint(
                fields=["namespace", "registry"], condition=~models.Q(registry=""), name="secret_registry_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class SecretEntry(models.Model):
    """One value, sealed; ``sealed_with`` says which key opens it, so that a rotation knows what is left to do."""

    secret = models.ForeignKey(Secret, on_delete=models.CASCADE, related_name="entries")
    key = models.CharField(max_length=63, validators=[RegexValidator(names.SECRET_PART)])
    sealed = models.TextField()
    sealed_with = models.CharField(max_length=16, db_index=True, help_text="Fingerprint of the key.")

    class Meta:
        ordering = ["key"]
        constraints = [models.UniqueConstraint(fields=["secret", "key"], name="secret_key_once")]
        default_permissions = ()  # nobody sees or changes a row of its own

    def __str__(self) -> str:
        return f"{self.key} of secret {self.secret_id}"
