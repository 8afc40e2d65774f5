"""What goes out, as serializers: OpenAPI is drawn from them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fleet.core.openapi import manifest_component
from fleet.core.rest import API_VERSION, Constant
from tasks import selectors
from tasks.models import Phase, TaskRun, TaskSchedule

STATES = ("Held", "Released", "Running", "Completed", "Completed (late)", "Failed", "NotStarted")


@extend_schema_field(manifest_component("TaskRunSpec"))
class SpecField(serializers.JSONField):
    """A spec as it was applied; what has its default is left out."""


class TaskMetadata(serializers.Serializer[TaskRun]):
    name = serializers.CharField()
    namespace = serializers.CharField()
    uid = serializers.UUIDField()
    creationTimestamp = serializers.DateTimeField(source="created_at")
    labels = serializers.DictField(child=serializers.CharField())
    annotations = serializers.DictField(child=serializers.CharField())


class TaskCounts(serializers.Serializer[Any]):
    """Devices of the frozen set."""

    matched = serializers.IntegerField()
    released = serializers.IntegerField()
    completed = serializers.IntegerField()
    failed = serializers.IntegerField()
    notStarted = serializers.IntegerField()


class TaskCondition(serializers.Serializer[Any]):
    type = serializers.CharField()
    status = serializers.ChoiceField(["True", "False", "Unknown"])
    reason = serializers.CharField()
    message = serializers.CharField()
    lastTransitionTime = serializers.DateTimeField()
    observedGeneration = serializers.IntegerField()


class TaskHistory(serializers.Serializer[Any]):
    """A change of the phase, or a release."""

    at = serializers.DateTimeField()
    event = serializers.CharField()
    message = serializers.CharField()


class JournalLine(serializers.Serializer[Any]):
    """A line of a device's journal; its time is by the device's clock."""

    number = serializers.IntegerField()
    step = serializers.CharField()
    event = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    message = serializers.CharField()


class TaskTargetRow(serializers.Serializer[Any]):
    """One device of the frozen set."""

    device = serializers.CharField()
    canary = serializers.BooleanField()
    state = serializers.CharField(help_text=", ".join(STATES))
    message = serializers.CharField(help_text="The error or what it waits for, in one sentence.")
    step = serializers.CharField(help_text="Where the updater is, or was.")
    since = serializers.DateTimeField()
    releasedAt = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(help_text="Why it is in the set.")
    connectivity = serializers.CharField(help_text="As of the device; forgotten when there is none any more.")
    attempt = serializers.CharField(help_text="Uid of the attempt; empty when it was never released.")
    journal = JournalLine(many=True, help_text="The last lines of its journal.")


class TaskStatus(serializers.Serializer[Any]):
    """The whole status (TSK-6)."""

    phase = serializers.ChoiceField(Phase.choices)
    since = serializers.DateTimeField()
    message = serializers.CharField(help_text="What it waits for or how it ended, in one sentence.")
    deadline = serializers.DateTimeField()
    counts = TaskCounts()
    frozenAt = serializers.DateTimeField(allow_null=True)
    openedAt = serializers.DateTimeField(allow_null=True, help_text="When devices that are no canary were released.")
    conditions = TaskCondition(many=True)
    history = TaskHistory(many=True)
    targets = TaskTargetRow(many=True, help_text="The first 50 that have not completed.")
    targetsOmitted = serializers.IntegerField(help_text="How many more have not completed.")


class TaskListStatus(serializers.Serializer[TaskRun]):
    """The status as far as a list shows it."""

    phase = serializers.ChoiceField(Phase.choices)
    since = serializers.DateTimeField(source="phase_since")
    message = serializers.CharField()
    deadline = serializers.DateTimeField(source="deadline_at")
    counts = serializers.SerializerMethodField()

    @extend_schema_field(TaskCounts)
    def get_counts(self, run: TaskRun) -> Any:
        return selectors.counts_of(run)


class TaskRunListed(serializers.Serializer[TaskRun]):
    apiVersion = Constant(API_VERSION)
    kind = Constant("TaskRun")
    metadata = TaskMetadata(source="*")
    spec = SpecField()
    status = TaskListStatus(source="*")


class TaskRunObject(serializers.Serializer[TaskRun]):
    """A task run, in the form of a Kubernetes object."""

    apiVersion = Constant(API_VERSION)
    kind = Constant("TaskRun")
    metadata = TaskMetadata(source="*")
    spec = SpecField()
    status = serializers.SerializerMethodField()

    @extend_schema_field(TaskStatus)
    def get_status(self, run: TaskRun) -> Any:
        return TaskStatus(selectors.run_status(run)).data


@extend_schema_field(manifest_component("AgentReleaseSpec"))
class AgentReleaseSpecField(serializers.JSONField):
    """An agent release's spec as it was applied; what has its default is left out."""


class AgentReleaseListed(TaskRunListed):
    kind = Constant("AgentRelease")
    spec = AgentReleaseSpecField()


class AgentReleaseObject(TaskRunObject):
    """An agent version for a set of devices, in the form of a Kubernetes object."""

    kind = Constant("AgentRelease")
    spec = AgentReleaseSpecField()


class TaskScheduleMetadata(TaskMetadata):
    generation = serializers.IntegerField(help_text="Grows with each change of the spec.")


@extend_schema_field(manifest_component("TaskScheduleSpec"))
class ScheduleSpecField(serializers.JSONField):
    """A schedule's spec as it was applied; what has its default is left out."""


class TaskScheduleStatus(serializers.Serializer[Any]):
    suspended = serializers.BooleanField()
    nextTime = serializers.DateTimeField(allow_null=True, help_text="None while it is suspended.")
    lastTime = serializers.DateTimeField(allow_null=True, help_text="The last time that came.")
    lastRun = serializers.CharField(help_text="Name of the newest run; empty when there is none.")
    lastRunPhase = serializers.CharField()
    message = serializers.CharField(help_text="What came of the last time, in one sentence.")


class TaskScheduleObject(serializers.Serializer[TaskSchedule]):
    """A schedule, in the form of a Kubernetes object."""

    apiVersion = Constant(API_VERSION)
    kind = Constant("TaskSchedule")
    metadata = TaskScheduleMetadata(source="*")
    spec = ScheduleSpecField()
    status = serializers.SerializerMethodField()

    @extend_schema_field(TaskScheduleStatus)
    def get_status(self, schedule: TaskSchedule) -> Any:
        return TaskScheduleStatus(selectors.schedule_status(schedule)).data
