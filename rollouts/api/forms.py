"""What goes out, as serializers: OpenAPI is drawn from them. Specs are described by the manifest's own types."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agent.wire.messages import MAX_LOG_LINES
from fleet.core import clock
from fleet.core.openapi import manifest_component
from fleet.core.rest import API_VERSION, Constant, Strict, Text, Whole
from fleet.targeting.models import TargetState
from rollouts import selectors
from rollouts.models import DELETING, Deployment, LogRequest, LogState, Phase, PhaseChange, Revision, Target
from rollouts.selectors.logs import log_sentence
from rollouts.selectors.on_device import OnDevice
from rollouts.services.logs import DEFAULT_LINES

PHASES = [(phase, phase) for phase in (*Phase.values, DELETING)]


@extend_schema_field(manifest_component("DeploymentSpec"))
class SpecField(serializers.JSONField):
    """A spec as it was applied; what has its default is left out."""


class Metadata(serializers.Serializer[Deployment]):
    name = serializers.CharField()
    namespace = serializers.CharField()
    uid = serializers.UUIDField()
    generation = serializers.IntegerField()
    creationTimestamp = serializers.DateTimeField(source="created_at")
    deletionTimestamp = serializers.DateTimeField(source="deleting_since", allow_null=True)
    labels = serializers.DictField(child=serializers.CharField())
    annotations = serializers.DictField(child=serializers.CharField())


class Counts(serializers.Serializer[Any]):
    """Devices of the frozen set."""

    matched = serializers.IntegerField()
    released = serializers.IntegerField()
    converged = serializers.IntegerField()
    failed = serializers.IntegerField()
    offline = serializers.IntegerField()


class Condition(serializers.Serializer[Any]):
    type = serializers.CharField()
    status = serializers.ChoiceField(["True", "False", "Unknown"])
    reason = serializers.CharField()
    message = serializers.CharField()
    lastTransitionTime = serializers.DateTimeField()
    observedGeneration = serializers.IntegerField()


class TargetRow(serializers.Serializer[Any]):
    """One device of the frozen set."""

    device = serializers.CharField()
    canary = serializers.BooleanField()
    state = serializers.ChoiceField(TargetState.choices)
    message = serializers.CharField(help_text="The last error or what it waits for, in one sentence.")
    since = serializers.DateTimeField()
    releasedAt = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(help_text="Why it is in the set.")
    connectivity = serializers.CharField(help_text="As of the device; forgotten when there is none any more.")
    connectivitySince = serializers.DateTimeField(allow_null=True)
    observedRevision = serializers.IntegerField(allow_null=True)
    images = serializers.DictField(child=serializers.CharField(), help_text="Running digests by container.")


class TargetObject(TargetRow):
    """A row of ``selectors.targets_of``."""

    def to_representation(self, instance: Target) -> Any:
        return super().to_representation(selectors.target_row(instance))


class ResolvedImage(serializers.Serializer[Any]):
    """What an image reference without a digest stands for in this revision (DEP-18)."""

    reference = serializers.CharField()
    digest = serializers.CharField(help_text="Empty until a device has proven it.")
    provenBy = serializers.CharField(help_text="The device that proved it first.")
    note = serializers.CharField(help_text="A sentence where it is not obvious; else empty.")


class ListStatus(serializers.Serializer[Deployment]):
    """The status as far as a list shows it."""

    phase = serializers.ChoiceField(PHASES)
    since = serializers.DateTimeField(source="phase_since")
    message = serializers.CharField(help_text="What it waits for, in one sentence; empty when it waits for nothing.")
    counts = Counts(source="*")
    latecomers = serializers.IntegerField()
    frozenAt = serializers.DateTimeField(source="frozen_at", allow_null=True)
    openedAt = serializers.DateTimeField(source="opened_at", allow_null=True)
    conditions = Condition(many=True)


class Status(serializers.Serializer[Any]):
    """The whole status (DEP-15)."""

    phase = serializers.ChoiceField(PHASES)
    since = serializers.DateTimeField()
    message = serializers.CharField(help_text="What it waits for, in one sentence; empty when it waits for nothing.")
    observedGeneration = serializers.IntegerField()
    counts = Counts()
    latecomers = serializers.IntegerField(help_text="Devices that match now and came after the freeze.")
    frozenAt = serializers.DateTimeField(allow_null=True)
    openedAt = serializers.DateTimeField(allow_null=True, help_text="When devices that are no canary were released.")
    conditions = Condition(many=True)
    images = ResolvedImage(many=True, help_text="The references without a digest, and what they stand for.")
    targets = TargetRow(many=True, help_text="The first 50 that have not converged.")
    targetsOmitted = serializers.IntegerField(help_text="How many more have not converged.")


class DeploymentListed(serializers.Serializer[Deployment]):
    """A row of ``selectors.deployment_list``, with ``spec`` annotated."""

    apiVersion = Constant(API_VERSION)
    kind = Constant("Deployment")
    metadata = Metadata(source="*")
    spec = SpecField()
    status = ListStatus(source="*")


class DeploymentObject(serializers.Serializer[Deployment]):
    """A deployment, in the form of a Kubernetes object."""

    apiVersion = Constant(API_VERSION)
    kind = Constant("Deployment")
    metadata = Metadata(source="*")
    spec = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()

    @extend_schema_field(manifest_component("DeploymentSpec"))
    def get_spec(self, deployment: Deployment) -> Any:
        return selectors.current_revision(deployment).spec

    @extend_schema_field(Status)
    def get_status(self, deployment: Deployment) -> Any:
        return Status(selectors.deployment_status(deployment)).data


class DeploymentOnDevice(serializers.Serializer[OnDevice]):
    """What a device shall have of one deployment, and what it said."""

    deployment = serializers.CharField(source="name", help_text="namespace/name")
    wanted = serializers.SerializerMethodField()
    targetState = serializers.ChoiceField(TargetState.choices, source="target.state", allow_null=True, default=None)
    observedState = serializers.CharField(source="observation.state", allow_null=True, default=None)
    observedRevision = serializers.IntegerField(source="observation.revision", allow_null=True, default=None)
    images = serializers.DictField(child=serializers.CharField(), source="observation.images", default=dict)
    message = serializers.CharField()

    @extend_schema_field({"type": "string", "enum": ["run", "remove", "nothing"]})
    def get_wanted(self, found: OnDevice) -> str:
        if found.item is None:
            return "nothing"
        return "remove" if found.item.remove else "run"


class LogQuestion(Strict):
    device = Text(max_length=63, default="", help_text="May be left out when only one device has the deployment.")
    container = Text(max_length=63, default="", help_text="May be left out when there is only one service.")
    lines = Whole(min_value=1, max_value=MAX_LOG_LINES, default=DEFAULT_LINES)


class LogObject(serializers.Serializer[LogRequest]):
    """A request for a log and, when it was answered, the text."""

    id = serializers.UUIDField(source="uid")
    device = serializers.CharField(source="device.name")
    container = serializers.CharField()
    lines = serializers.IntegerField()
    state = serializers.ChoiceField(LogState.choices)
    message = serializers.SerializerMethodField()
    requestedAt = serializers.DateTimeField(source="requested_at")
    requestedBy = serializers.CharField(source="requested_by")
    endedAt = serializers.DateTimeField(source="ended_at", allow_null=True)
    text = serializers.CharField(trim_whitespace=False)
    isCut = serializers.BooleanField(source="is_cut", help_text="The text was too long and is cut at the front.")

    def get_message(self, request: LogRequest) -> str:
        return log_sentence(request, clock.now())


class PhaseChangeObject(serializers.Serializer[PhaseChange]):
    at = serializers.DateTimeField()
    source = serializers.CharField()
    target = serializers.CharField()
    message = serializers.CharField()


class RevisionObject(serializers.Serializer[Revision]):
    """One generation of the spec, and how it went."""

    generation = serializers.IntegerField()
    specHash = serializers.CharField(source="spec_hash")
    createdAt = serializers.DateTimeField(source="created_at")
    createdBy = serializers.CharField(source="created_by")
    phase = serializers.ChoiceField(Phase.choices)
    since = serializers.DateTimeField(source="phase_since")
    message = serializers.CharField()
    counts = Counts(source="*")
    frozenAt = serializers.DateTimeField(source="frozen_at", allow_null=True)
    openedAt = serializers.DateTimeField(source="opened_at", allow_null=True)
    history = PhaseChangeObject(many=True)
    spec = SpecField()


class Result(serializers.Serializer[Any]):
    """What became of one manifest."""

    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    outcome = serializers.ChoiceField(["created", "configured", "unchanged"])
    generation = serializers.IntegerField()
    message = serializers.CharField()


class Results(serializers.Serializer[Any]):
    dryRun = serializers.BooleanField()
    results = Result(many=True)
