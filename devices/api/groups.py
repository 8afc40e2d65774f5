"""Groups of the database group source."""

from __future__ import annotations

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices import services
from devices.api.forms import GroupDevices, GroupNew, GroupObject
from devices.models import DeviceGroup
from fleet.core.errors import NotFound
from fleet.core.rest import ApiView


class GroupFilter(filters.FilterSet):
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Part of the name.")


def groups() -> QuerySet[DeviceGroup]:
    """Groups with their devices and deployers: three queries whatever their number."""
    return DeviceGroup.objects.prefetch_related("devices", "deployers").order_by("name")


def group_named(name: str) -> DeviceGroup:
    """Raises:
    NotFound: there is no such group.
    """
    group = groups().filter(name=name).first()
    if group is None:
        raise NotFound(f"there is no group {name[:80]!r}; fleetctl get groups lists them")
    return group


class GroupList(ApiView):
    serializer_class = GroupObject
    filterset_class = GroupFilter
    queryset = DeviceGroup.objects.none()
    required_permissions = {"GET": ["devices.view_devicegroup"], "POST": ["devices.add_devicegroup"]}

    @extend_schema(operation_id="group_list", responses=GroupObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Groups by name."""
        return self.page_of(groups())

    @extend_schema(operation_id="group_create", request=GroupNew, responses={201: GroupObject})
    def post(self, request: Request, **_: str) -> Response:
        """A new, empty group."""
        group = services.group_create(name=self.checked(GroupNew)["name"], actor=self.actor)
        return Response(GroupObject(group).data, status=201)


class GroupOne(ApiView):
    serializer_class = GroupObject
    queryset = DeviceGroup.objects.none()
    filter_backends = ()
    required_permissions = {"GET": ["devices.view_devicegroup"], "DELETE": ["devices.delete_devicegroup"]}

    @extend_schema(operation_id="group_get")
    def get(self, request: Request, **_: str) -> Response:
        """One group."""
        return Response(GroupObject(group_named(self.kwargs["name"])).data)

    @extend_schema(operation_id="group_delete", responses={204: None})
    def delete(self, request: Request, **_: str) -> Response:
        """Delete it; frozen target sets stay as they are."""
        services.group_delete(group=group_named(self.kwargs["name"]), actor=self.actor)
        return Response(status=204)


class GroupMembers(ApiView):
    queryset = DeviceGroup.objects.none()
    required_permissions = {"PUT": ["devices.change_devicegroup"]}

    @extend_schema(operation_id="group_set_devices", request=GroupDevices, responses=GroupObject)
    def put(self, request: Request, **_: str) -> Response:
        """Say which devices are in the group."""
        group = group_named(self.kwargs["name"])
        services.group_set_devices(group=group, devices=self.checked(GroupDevices)["devices"], actor=self.actor)
        return Response(GroupObject(group_named(self.kwargs["name"])).data)
