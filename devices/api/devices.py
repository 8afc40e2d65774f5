"""Devices."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices import selectors, services
from devices.api.forms import DeviceChange, DeviceObject
from devices.models import Connectivity, Device
from devices.selectors import device_named
from fleet.core.filters import AnyOfFilter, TrueFalseFilter
from fleet.core.rest import ApiView
from fleet.core.short_selectors import selected


class DeviceFilter(filters.FilterSet):
    connectivity = AnyOfFilter(field_name="heartbeat__connectivity", choices=Connectivity.choices)
    canary = TrueFalseFilter()
    group = filters.CharFilter(field_name="groups__name", label="Name of a group.")
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Part of the name.")
    selector = filters.CharFilter(method="select", label="Labels, as in role=analyzer,tier in (a,b),!spare")

    def select(self, rows: Any, _: str, value: str) -> Any:
        return selected(rows, value)


class DeviceList(ApiView):
    serializer_class = DeviceObject
    filterset_class = DeviceFilter
    queryset = Device.objects.none()
    required_permissions = {"GET": ["devices.view_device"]}

    @extend_schema(operation_id="device_list", responses=DeviceObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Devices by name."""
        return self.page_of(selectors.devices_overview().order_by("name"))


class DeviceOne(ApiView):
    serializer_class = DeviceObject
    queryset = Device.objects.none()
    filter_backends = ()
    required_permissions = {
        "GET": ["devices.view_device"],
        "PATCH": ["devices.change_device"],
        "DELETE": ["devices.delete_device"],
    }

    @extend_schema(operation_id="device_get")
    def get(self, request: Request, **_: str) -> Response:
        """One device."""
        return Response(self._shown())

    @extend_schema(operation_id="device_change", request=DeviceChange, responses=DeviceObject)
    def patch(self, request: Request, **_: str) -> Response:
        """Make it a canary or not, replace the operator's labels."""
        device, wanted = device_named(self.kwargs["name"]), self.checked(DeviceChange)
        with transaction.atomic():
            if "canary" in wanted:
                services.device_set_canary(device=device, canary=wanted["canary"], actor=self.actor)
            if "labels" in wanted:
                services.device_set_labels(device=device, labels=wanted["labels"], actor=self.actor)
        return Response(self._shown())

    @extend_schema(operation_id="device_forget", responses={204: None})
    def delete(self, request: Request, **_: str) -> Response:
        """Forget it: its credential ends at once."""
        services.device_forget(device=device_named(self.kwargs["name"]), actor=self.actor)
        return Response(status=204)

    def _shown(self) -> Any:
        return DeviceObject(device_named(self.kwargs["name"])).data


class DeviceReset(ApiView):
    queryset = Device.objects.none()
    required_permissions = {"POST": ["devices.change_device"]}

    @extend_schema(operation_id="device_reset_credential", request=None, responses={204: None})
    def post(self, request: Request, **_: str) -> Response:
        """End its credential; it may enrol again under its name within a day."""
        services.device_reset_credential(device=device_named(self.kwargs["name"]), actor=self.actor)
        return Response(status=204)
