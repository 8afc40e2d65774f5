"""Task runs: where they stand, and what may be done with one."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from devices.api.forms import OneDevice
from fleet.core.errors import NotFound
from fleet.core.rest import ApiView
from fleet.core.short_selectors import selected
from fleet.targeting.models import TargetState
from tasks import selectors, services
from tasks.api.forms import TaskRunListed, TaskRunObject, TaskTargetRow
from tasks.models import Kind, Phase, TaskRun, TaskTarget

VIEW = {"GET": ["tasks.view_taskrun"]}


class TaskRunFilter(filters.FilterSet):
    namespace = filters.CharFilter()
    phase = filters.MultipleChoiceFilter(choices=Phase.choices)
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Part of the name.")
    selector = filters.CharFilter(method="select", label="Labels, as in team=imaging,!old")

    def select(self, rows: Any, _: str, value: str) -> Any:
        return selected(rows, value)


class TaskTargetFilter(filters.FilterSet):
    state = filters.MultipleChoiceFilter(choices=TargetState.choices)
    canary = filters.BooleanFilter()
    search = filters.CharFilter(field_name="device_name", lookup_expr="icontains", label="Part of the device's name.")


def present(kind: Kind) -> QuerySet[TaskRun]:
    """Runs of this kind that were not deleted."""
    return TaskRun.objects.filter(kind=kind, deleted_at=None)


class TaskRunList(ApiView):
    kind = Kind.TASK_RUN
    serializer_class = TaskRunListed
    filterset_class = TaskRunFilter
    queryset = TaskRun.objects.none()
    required_permissions = VIEW

    @extend_schema(operation_id="taskrun_list", responses=TaskRunListed(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Task runs of all namespaces, the newest first; deleted ones are in the admin's history only."""
        return self.page_of(present(self.kind).order_by("-created_at", "-pk"))


class TaskRunView(ApiView):
    """Anything about one run of a kind; ``shape`` is how it is shown."""

    kind = Kind.TASK_RUN
    shape: type[Serializer[TaskRun]] = TaskRunObject
    queryset = TaskRun.objects.none()
    filter_backends = ()

    def found(self) -> TaskRun:
        """The run of the address.

        Raises:
            NotFound: there is none.
        """
        namespace, name = self.kwargs["namespace"], self.kwargs["name"]
        run = present(self.kind).filter(namespace=namespace, name=name).first()
        if run is None:
            raise NotFound(f"there is no {self.kind.label} {namespace[:80]}/{name[:80]}")
        return run

    def shown(self, run: TaskRun | None = None) -> Any:
        """The run as it is now, or another one."""
        return self.shape(run or self.found()).data


class TaskRunOne(TaskRunView):
    serializer_class = TaskRunObject
    required_permissions = {**VIEW, "DELETE": ["tasks.delete_taskrun"]}

    @extend_schema(operation_id="taskrun_get")
    def get(self, request: Request, **_: str) -> Response:
        """One run with its whole status."""
        return Response(self.shown())

    @extend_schema(operation_id="taskrun_delete", request=None, responses={204: None})
    def delete(self, request: Request, **_: str) -> Response:
        """Release nothing more and free the name; what has begun finishes and stays in the history."""
        services.taskrun_delete(run=self.found(), actor=self.actor)
        return Response(status=204)


class TaskRunTargets(TaskRunView):
    serializer_class = TaskTargetRow
    filter_backends = ApiView.filter_backends
    filterset_class = TaskTargetFilter
    queryset = TaskTarget.objects.none()
    required_permissions = VIEW

    @extend_schema(operation_id="taskrun_targets", responses=TaskTargetRow(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """The frozen set, canaries first, with the tails of the journals."""
        return self.page_of(selectors.targets_of(self.found()))

    def get_serializer(self, page: Any, **options: Any) -> Any:
        """The page's rows with their journals, read at once."""
        return TaskTargetRow(selectors.target_rows(page), **options)


class TaskRunEnd(TaskRunView):
    required_permissions = {"POST": ["tasks.end_taskrun"]}

    @extend_schema(operation_id="taskrun_end", request=None, responses=TaskRunObject)
    def post(self, request: Request, **_: str) -> Response:
        """Release nothing more, for good; what has begun finishes."""
        services.taskrun_end(run=self.found(), actor=self.actor)
        return Response(self.shown())


class TaskRunRecreate(TaskRunView):
    required_permissions = {"POST": ["tasks.add_taskrun"]}

    @extend_schema(operation_id="taskrun_recreate", request=None, responses={201: TaskRunObject})
    def post(self, request: Request, **_: str) -> Response:
        """A new run of the same task for the devices that failed in this one."""
        made = services.taskrun_recreate(run=self.found(), actor=self.actor)
        return Response(self.shown(made), status=201)


class TaskRunGiveUp(TaskRunView):
    required_permissions = {"POST": ["upgrades.give_up_attempt"]}

    @extend_schema(operation_id="taskrun_give_up", request=OneDevice, responses=TaskRunObject)
    def post(self, request: Request, **_: str) -> Response:
        """Wait no more for a device that has begun and is not heard any more: it counts as failed."""
        services.taskrun_give_up(run=self.found(), device=self.checked(OneDevice)["device"], actor=self.actor)
        return Response(self.shown())
