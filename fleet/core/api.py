"""What happened by itself, over REST (API-1)."""

from __future__ import annotations

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.core.models import Event
from fleet.core.rest import ApiView


class EventObject(serializers.Serializer[Event]):
    """A device went offline, a rollout converged, a label was ignored."""

    at = serializers.DateTimeField()
    kind = serializers.CharField(source="object_kind")
    name = serializers.CharField(source="object_name")
    reason = serializers.CharField(help_text="One CamelCase word.")
    message = serializers.CharField(help_text="One sentence.")


class EventFilter(filters.FilterSet):
    kind = filters.CharFilter(field_name="object_kind", label="Deployment or Device.")
    name = filters.CharFilter(field_name="object_name", label="Name of the object; namespace/name of a deployment.")
    reason = filters.CharFilter()


class EventList(ApiView):
    serializer_class = EventObject
    filterset_class = EventFilter
    queryset = Event.objects.none()
    required_permissions = {"GET": ["core.view_event"]}

    @extend_schema(operation_id="event_list", responses=EventObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Events of all objects, newest first."""
        return self.page_of(Event.objects.order_by("-at", "-id"))
