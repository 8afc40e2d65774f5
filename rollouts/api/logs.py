"""Logs of containers: ask, then look until the device has answered (AGT-16)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.selectors import device_named
from fleet.core.rest import NO_STORE
from rollouts import services
from rollouts.api.deployments import DeploymentView
from rollouts.api.forms import LogObject, LogQuestion
from rollouts.selectors.logs import log_request

READ = "rollouts.read_logs"


class Logs(DeploymentView):
    serializer_class = LogObject
    required_permissions = {"POST": [READ]}

    @extend_schema(operation_id="logs_request", request=LogQuestion, responses={201: LogObject})
    def post(self, request: Request, **_: str) -> Response:
        """Ask a device for the end of a container's log."""
        asked = self.checked(LogQuestion)
        device = device_named(asked["device"]) if asked["device"] else None
        made = services.logs_request(
            deployment=self.found(),
            device=device,
            container=asked["container"],
            lines=asked["lines"],
            actor=self.actor,
        )
        return Response(LogObject(made).data, status=201, headers=NO_STORE)


class LogOne(DeploymentView):
    serializer_class = LogObject
    required_permissions = {"GET": [READ]}

    @extend_schema(operation_id="logs_get")
    def get(self, request: Request, **_: Any) -> Response:
        """What became of a request; an hour after its end it is forgotten."""
        found = log_request(self.found(), self.kwargs["id"])
        return Response(LogObject(found).data, headers=NO_STORE)
