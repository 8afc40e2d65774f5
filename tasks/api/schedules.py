"""Schedules: when each makes its next run, and what may be done with one (TSK-9)."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.core.errors import NotFound
from fleet.core.filters import TrueFalseFilter
from fleet.core.rest import ApiView
from fleet.core.short_selectors import selected
from tasks import services
from tasks.api.forms import TaskRunObject, TaskScheduleObject
from tasks.models import TaskSchedule

VIEW = {"GET": ["tasks.view_taskschedule"]}


class TaskScheduleFilter(filters.FilterSet):
    namespace = filters.CharFilter()
    suspended = TrueFalseFilter()
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Part of the name.")
    selector = filters.CharFilter(method="select", label="Labels, as in team=imaging,!old")

    def select(self, rows: Any, _: str, value: str) -> Any:
        return selected(rows, value)


def _rows() -> QuerySet[TaskSchedule]:
    """Schedules with their last runs, by name."""
    return TaskSchedule.objects.select_related("last_run").order_by("namespace", "name")


class TaskScheduleList(ApiView):
    serializer_class = TaskScheduleObject
    filterset_class = TaskScheduleFilter
    queryset = TaskSchedule.objects.none()
    required_permissions = VIEW

    @extend_schema(operation_id="taskschedule_list", responses=TaskScheduleObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Schedules of all namespaces, by name."""
        return self.page_of(_rows())


class TaskScheduleView(ApiView):
    """Anything about one schedule."""

    queryset = TaskSchedule.objects.none()
    filter_backends = ()

    def found(self) -> TaskSchedule:
        """The schedule of the address.

        Raises:
            NotFound: there is none.
        """
        namespace, name = self.kwargs["namespace"], self.kwargs["name"]
        schedule = _rows().filter(namespace=namespace, name=name).first()
        if schedule is None:
            raise NotFound(f"there is no task schedule {namespace[:80]}/{name[:80]}")
        return schedule

    def suspend(self, suspended: bool) -> Response:
        """Suspend or resume it."""
        services.schedule_suspend(schedule=self.found(), suspended=suspended, actor=self.actor)
        return Response(TaskScheduleObject(self.found()).data)


class TaskScheduleOne(TaskScheduleView):
    serializer_class = TaskScheduleObject
    required_permissions = {**VIEW, "DELETE": ["tasks.delete_taskschedule"]}

    @extend_schema(operation_id="taskschedule_get")
    def get(self, request: Request, **_: str) -> Response:
        """One schedule with its next time and what came of the last."""
        return Response(TaskScheduleObject(self.found()).data)

    @extend_schema(operation_id="taskschedule_delete", request=None, responses={204: None})
    def delete(self, request: Request, **_: str) -> Response:
        """Make no more runs; those that were made stay and go on."""
        services.schedule_delete(schedule=self.found(), actor=self.actor)
        return Response(status=204)


class TaskScheduleSuspend(TaskScheduleView):
    required_permissions = {"POST": ["tasks.change_taskschedule"]}

    @extend_schema(operation_id="taskschedule_suspend", request=None, responses=TaskScheduleObject)
    def post(self, request: Request, **_: str) -> Response:
        """Make no more runs until it is resumed."""
        return self.suspend(True)


class TaskScheduleResume(TaskScheduleView):
    required_permissions = {"POST": ["tasks.change_taskschedule"]}

    @extend_schema(operation_id="taskschedule_resume", request=None, responses=TaskScheduleObject)
    def post(self, request: Request, **_: str) -> Response:
        """Go on with the next time from now; what was missed is not made up."""
        return self.suspend(False)


class TaskScheduleRun(TaskScheduleView):
    required_permissions = {"POST": ["tasks.add_taskrun"]}

    @extend_schema(operation_id="taskschedule_run", request=None, responses={201: TaskRunObject})
    def post(self, request: Request, **_: str) -> Response:
        """Make a run now; refused while one of it is under way."""
        made = services.schedule_run_now(schedule=self.found(), actor=self.actor)
        return Response(TaskRunObject(made).data, status=201)
