"""What comes in and goes out, as serializers: OpenAPI is drawn from them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agent.wire import names
from agent.wire.manifest import MAX_ARTIFACT_BYTES
from fleet.core.openapi import manifest_component
from fleet.core.rest import Strict, Text, Whole
from releases.models import Architecture, ShelvedRelease
from releases.selectors import target_of


class ReleaseElsewhere(Strict):
    """A release that lies at an address of somebody else."""

    version = serializers.RegexField(names.VERSION, max_length=64)
    architecture = serializers.ChoiceField(Architecture.choices)
    sha256 = serializers.RegexField(names.SHA256)
    size = Whole(min_value=1, max_value=MAX_ARTIFACT_BYTES, help_text="Bytes; devices fetch no more.")
    url = Text(max_length=2048)
    notes = Text(max_length=4000, required=False, default="", allow_blank=True)


class ReleaseFile(serializers.Serializer[Any]):
    """An archive that ``make agent-release`` has built; all else is read from it."""

    file = serializers.FileField()
    notes = serializers.CharField(max_length=4000, required=False, default="", allow_blank=True)


class ReleaseObject(serializers.Serializer[ShelvedRelease]):
    """A release on the shelf."""

    version = serializers.CharField()
    architecture = serializers.CharField()
    sha256 = serializers.CharField()
    size = serializers.IntegerField()
    url = serializers.CharField(help_text="Empty when it lies here.")
    notes = serializers.CharField()
    addedAt = serializers.DateTimeField(source="added_at")
    addedBy = serializers.CharField(source="added_by")
    running = serializers.IntegerField(help_text="Devices of this architecture that report this version.")
    wanting = serializers.IntegerField(help_text="Devices that shall run this very archive.")
    agentUpgrade = serializers.SerializerMethodField(
        help_text="What to write into a device's spec to have it run this."
    )

    @extend_schema_field(manifest_component("AgentUpgrade"))
    def get_agentUpgrade(self, release: ShelvedRelease) -> Any:  # noqa: N802  (the field's name)
        return target_of(release, self.context["request"].build_absolute_uri("/"))
