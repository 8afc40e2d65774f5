"""The agent that a device shall run: set, cleared, asked for again, given up."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agent.wire import canonical
from agent.wire.manifest import API_VERSION
from devices.api.forms import DeviceObject
from devices.models import Device
from devices.selectors import device_named
from fleet.core import door
from fleet.core.openapi import manifest_component
from fleet.core.rest import ApiView
from upgrades import services

CHANGE = ["upgrades.change_desiredagent"]


class AgentUpgradeView(ApiView):
    """Anything about the agent that one device shall run."""

    queryset = Device.objects.none()
    filter_backends = ()

    def found(self) -> Device:
        """The device of the address.

        Raises:
            NotFound: there is none.
        """
        return device_named(self.kwargs["name"])

    def shown(self) -> Response:
        """The device as it is now."""
        return Response(DeviceObject(self.found()).data)


class AgentUpgradeOne(AgentUpgradeView):
    required_permissions = {"PUT": CHANGE, "DELETE": CHANGE}

    @extend_schema(
        operation_id="device_agent_upgrade_set",
        request={"application/json": manifest_component("AgentUpgrade")},
        responses=DeviceObject,
    )
    def put(self, request: Request, **_: str) -> Response:
        """Say which agent the device shall run. The same again changes nothing."""
        document = {
            "apiVersion": API_VERSION,
            "kind": "Device",
            "metadata": {"name": self.found().name},
            "spec": {"agentUpgrade": request.data},
        }
        (manifest,) = door.admit(canonical.encode(document))
        services.device_apply(manifest=manifest, actor=self.actor)
        return self.shown()

    @extend_schema(operation_id="device_agent_upgrade_clear", request=None, responses=DeviceObject)
    def delete(self, request: Request, **_: str) -> Response:
        """Let the device keep the agent that it has; what it has begun goes on."""
        services.agent_upgrade_set(device=self.found(), target=None, actor=self.actor)
        return self.shown()


class AgentUpgradeRetry(AgentUpgradeView):
    required_permissions = {"POST": CHANGE}

    @extend_schema(operation_id="device_agent_upgrade_retry", request=None, responses=DeviceObject)
    def post(self, request: Request, **_: str) -> Response:
        """Ask the device once more, after an attempt that is over."""
        services.agent_upgrade_retry(device=self.found(), actor=self.actor)
        return self.shown()


class AgentUpgradeGiveUp(AgentUpgradeView):
    required_permissions = {"POST": ["upgrades.give_up_attempt"]}

    @extend_schema(operation_id="device_agent_upgrade_give_up", request=None, responses=DeviceObject)
    def post(self, request: Request, **_: str) -> Response:
        """Wait no more for a device that has begun and is not heard any more: the upgrade counts as failed."""
        services.agent_upgrade_give_up(device=self.found(), actor=self.actor)
        return self.shown()
