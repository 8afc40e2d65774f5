"""What goes in and out, as serializers: OpenAPI is drawn from them. Values only go in."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from fleet.core.rest import API_VERSION, Constant, Strict, Text
from vault import uses
from vault.models import Secret


class SecretMetadata(serializers.Serializer[Secret]):
    name = serializers.CharField()
    namespace = serializers.CharField()
    creationTimestamp = serializers.DateTimeField(source="created_at")


class SecretListed(serializers.Serializer[Secret]):
    """A secret by its names; nobody is shown a value."""

    apiVersion = Constant(API_VERSION)
    kind = Constant("Secret")
    metadata = SecretMetadata(source="*")
    keys = serializers.SerializerMethodField(help_text="Names of its values.")
    registry = serializers.CharField(help_text="The image registry that it is the login for; empty for none.")
    updatedAt = serializers.DateTimeField(source="updated_at")
    updatedBy = serializers.CharField(source="updated_by")

    def get_keys(self, secret: Secret) -> list[str]:
        return [entry.key for entry in secret.entries.all()]


class SecretObject(SecretListed):
    usedBy = serializers.SerializerMethodField("used_by", help_text="Deployments whose newest revision needs it.")

    def used_by(self, secret: Secret) -> list[str]:
        return uses.of(secret)


class Value(Text):
    """Taken as it is: a blank at its end may be a part of it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_blank=True, trim_whitespace=False, **kwargs)
        self.validators = []  # the service says in its own words what is not allowed


class SecretNew(Strict):
    """Replaces the whole secret."""

    values = serializers.DictField(child=Value(), write_only=True, help_text="All its values by key.")
    registry = Text(max_length=255, allow_blank=True, default="", help_text="host or host:port; empty for none.")


class SecretChange(Strict):
    """What is not named stays."""

    values = serializers.DictField(
        child=Value(allow_null=True), write_only=True, default=dict, help_text="By key; null takes a key away."
    )
    registry = Text(
        max_length=255, allow_blank=True, allow_null=True, default=None, help_text="Empty for none; null leaves it."
    )
