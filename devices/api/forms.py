"""What goes in and out, as serializers: OpenAPI is drawn from them."""

from __future__ import annotations

from datetime import timedelta

from rest_framework import serializers

from devices.api.additions import Extensible
from devices.models import Connectivity, Device, DeviceGroup, EnrolmentToken
from fleet.core.rest import API_VERSION, Constant, Names, Strict, Text, TrueFalse, Whole

#: Ten years: longer than any roll-out of machines.
MAX_TOKEN_SECONDS = int(timedelta(days=3650).total_seconds())


class DeviceMetadata(serializers.Serializer[Device]):
    name = serializers.CharField()
    uid = serializers.UUIDField()
    creationTimestamp = serializers.DateTimeField(source="enrolled_at")
    labels = serializers.DictField(child=serializers.CharField(), help_text="What selectors see.")


class DeviceSpec(Extensible):
    """What operators want of it."""

    part = "spec"
    canary = serializers.BooleanField()
    labels = serializers.DictField(
        child=serializers.CharField(), source="operator_labels", help_text="The operator's; they win."
    )


class DeviceStatus(Extensible):
    """What was observed of it."""

    part = "status"
    connectivity = serializers.ChoiceField(Connectivity.choices, source="heartbeat.connectivity")
    connectivitySince = serializers.DateTimeField(source="heartbeat.connectivity_since")
    lastSeen = serializers.DateTimeField(source="heartbeat.last_seen", allow_null=True)
    groups = Names(read_only=True)
    reportedLabels = serializers.DictField(child=serializers.CharField(), source="reported_labels")
    capabilities = serializers.ListField(child=serializers.CharField())
    architecture = serializers.CharField()
    os = serializers.CharField()
    kernel = serializers.CharField()
    bootId = serializers.CharField(source="boot_id")
    agentVersion = serializers.CharField(source="agent_version")
    updaterVersion = serializers.CharField(source="updater_version")
    podmanVersion = serializers.CharField(source="podman_version")
    problems = serializers.ListField(
        child=serializers.JSONField(), help_text="What the device says is wrong with itself."
    )


class DeviceObject(serializers.Serializer[Device]):
    """A device, in the form of a Kubernetes object."""

    apiVersion = Constant(API_VERSION)
    kind = Constant("Device")
    metadata = DeviceMetadata(source="*")
    spec = DeviceSpec(source="*")
    status = DeviceStatus(source="*")


class DeviceChange(Strict):
    """Absent fields stay as they are; ``labels`` replaces all of the operator's labels."""

    canary = TrueFalse(required=False)
    labels = serializers.DictField(child=Text(allow_blank=True), required=False)


class GroupObject(serializers.Serializer[DeviceGroup]):
    name = serializers.CharField()
    devices = Names(read_only=True)
    deployers = Names(read_only=True, help_text="Roles whose members may deploy to the group.")


class GroupNew(Strict):
    name = Text(max_length=253)


class GroupDevices(Strict):
    devices = serializers.ListField(child=Text(max_length=63), help_text="All devices of the group, by name.")


class TokenObject(serializers.Serializer[EnrolmentToken]):
    """An enrolment token without its secret, which nobody can read again."""

    name = serializers.CharField()
    createdAt = serializers.DateTimeField(source="created_at")
    createdBy = serializers.CharField(source="created_by.username", default="")
    expiresAt = serializers.DateTimeField(source="expires_at")
    useLimit = serializers.IntegerField(source="use_limit")
    uses = serializers.IntegerField()
    revokedAt = serializers.DateTimeField(source="revoked_at", allow_null=True)
    labels = serializers.DictField(child=serializers.CharField())
    groups = Names(read_only=True)


class TokenCreated(TokenObject):
    """The only answer that has the token itself."""

    token = serializers.SerializerMethodField()

    def get_token(self, _: EnrolmentToken) -> str:
        return str(self.context["plain"])


class TokenNew(Strict):
    name = Text(max_length=100)
    expiresInSeconds = Whole(min_value=1, max_value=MAX_TOKEN_SECONDS)
    useLimit = Whole()
    labels = serializers.DictField(child=Text(allow_blank=True), default=dict)
    groups = serializers.ListField(child=Text(max_length=253), default=list)


class OneDevice(Strict):
    device = Text(max_length=63, help_text="Its name.")
