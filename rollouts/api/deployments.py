"""Deployments: where they stand, and what may be done with one."""

from __future__ import annotations

from typing import Any

from django.db.models import F
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.forms import OneDevice
from devices.models import Connectivity
from devices.selectors import device_named
from fleet.core.errors import NotFound
from fleet.core.filters import AnyOfFilter, TrueFalseFilter
from fleet.core.rest import ApiView
from fleet.core.short_selectors import selected
from fleet.targeting.models import TargetState
from rollouts import selectors, services
from rollouts.api.forms import (
    PHASES,
    DeploymentListed,
    DeploymentObject,
    DeploymentOnDevice,
    RevisionObject,
    TargetObject,
)
from rollouts.api.rendering import Yaml
from rollouts.models import Deployment, Target
from rollouts.selectors.manifests import text
from rollouts.selectors.on_device import deployments_on

VIEW = {"GET": ["rollouts.view_deployment"]}


class DeploymentFilter(filters.FilterSet):
    namespace = filters.CharFilter()
    phase = AnyOfFilter(choices=PHASES)
    search = filters.CharFilter(field_name="name", lookup_expr="icontains", label="Part of the name.")
    selector = filters.CharFilter(method="select", label="Labels, as in team=imaging,!old")

    def select(self, rows: Any, _: str, value: str) -> Any:
        return selected(rows, value)


class TargetFilter(filters.FilterSet):
    state = AnyOfFilter(choices=TargetState.choices)
    connectivity = AnyOfFilter(choices=Connectivity.choices)
    canary = TrueFalseFilter()
    search = filters.CharFilter(field_name="device_name", lookup_expr="icontains", label="Part of the device's name.")


class DeploymentList(ApiView):
    serializer_class = DeploymentListed
    filterset_class = DeploymentFilter
    queryset = Deployment.objects.none()
    required_permissions = VIEW

    @extend_schema(operation_id="deployment_list", responses=DeploymentListed(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Deployments of all namespaces, by namespace and name."""
        rows = selectors.deployment_list().annotate(spec=F("current__spec"))
        return self.page_of(rows.order_by("namespace", "name"))


class DeploymentView(ApiView):
    """Anything about one deployment."""

    queryset = Deployment.objects.none()
    filter_backends = ()

    def found(self) -> Deployment:
        """The deployment of the address.

        Raises:
            NotFound: there is none.
        """
        namespace, name = self.kwargs["namespace"], self.kwargs["name"]
        deployment = Deployment.objects.filter(namespace=namespace, name=name).first()
        if deployment is None:
            raise NotFound(f"there is no deployment {namespace[:80]}/{name[:80]}")
        return deployment


class DeploymentOne(DeploymentView):
    serializer_class = DeploymentObject
    required_permissions = {**VIEW, "DELETE": ["rollouts.delete_deployment"]}

    @extend_schema(operation_id="deployment_get")
    def get(self, request: Request, **_: str) -> Response:
        """One deployment with its whole status."""
        return Response(DeploymentObject(self.found()).data)

    @extend_schema(operation_id="deployment_delete", request=None, responses={204: None, 202: DeploymentObject})
    def delete(self, request: Request, **_: str) -> Response:
        """Take it off its devices: 204 when it is gone, 202 while devices have to prove it."""
        deployment = self.found()
        services.deployment_delete(deployment=deployment, actor=self.actor)
        left = Deployment.objects.filter(pk=deployment.pk).first()
        return Response(status=204) if left is None else Response(DeploymentObject(left).data, status=202)


class DeploymentTargets(DeploymentView):
    serializer_class = TargetObject
    filter_backends = ApiView.filter_backends
    filterset_class = TargetFilter
    queryset = Target.objects.none()
    required_permissions = VIEW

    @extend_schema(operation_id="deployment_targets", responses=TargetObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """The frozen set of the newest revision, canaries first."""
        return self.page_of(selectors.targets_of(selectors.current_revision(self.found())))


class DeploymentRevisions(DeploymentView):
    serializer_class = RevisionObject
    required_permissions = VIEW

    @extend_schema(operation_id="deployment_revisions", responses=RevisionObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """All revisions with the history of their phases, newest first."""
        return self.page_of(self.found().revisions.prefetch_related("history").order_by("-generation"))


class DeploymentManifest(DeploymentView):
    renderer_classes = [Yaml]
    required_permissions = VIEW

    @extend_schema(
        operation_id="deployment_manifest",
        responses={(200, "application/yaml"): OpenApiResponse(OpenApiTypes.STR)},
    )
    def get(self, request: Request, **_: str) -> Response:
        """The manifest that would make the newest revision again."""
        deployment = self.found()
        return Response(text(deployment, selectors.current_revision(deployment)))


class DeploymentRetarget(DeploymentView):
    required_permissions = {"POST": ["rollouts.retarget_deployment"]}

    @extend_schema(operation_id="deployment_retarget", request=None, responses=DeploymentObject)
    def post(self, request: Request, **_: str) -> Response:
        """A new revision of the same spec, which freezes its targets anew."""
        services.deployment_retarget(deployment=self.found(), actor=self.actor)
        return Response(DeploymentObject(self.found()).data)


class RolloutEnd(DeploymentView):
    required_permissions = {"POST": ["rollouts.end_deployment"]}

    @extend_schema(operation_id="rollout_end", request=None, responses=DeploymentObject)
    def post(self, request: Request, **_: str) -> Response:
        """Release nothing more of the newest revision, for good."""
        services.rollout_end(deployment=self.found(), actor=self.actor)
        return Response(DeploymentObject(self.found()).data)


class DeploymentForgetDevice(DeploymentView):
    required_permissions = {"POST": ["rollouts.forget_device_deployment"]}

    @extend_schema(
        operation_id="deployment_forget_device", request=OneDevice, responses={204: None, 200: DeploymentObject}
    )
    def post(self, request: Request, **_: str) -> Response:
        """Wait no more for a device in a deletion: 204 when the deployment is gone by that, else 200."""
        deployment = self.found()
        device = device_named(self.checked(OneDevice)["device"])
        services.deployment_forget_device(deployment=deployment, device=device, actor=self.actor)
        left = Deployment.objects.filter(pk=deployment.pk).first()
        return Response(status=204) if left is None else Response(DeploymentObject(left).data)


class DeploymentsOnDevice(ApiView):
    serializer_class = DeploymentOnDevice
    queryset = Deployment.objects.none()
    filter_backends = ()
    required_permissions = {"GET": ["devices.view_device", "rollouts.view_deployment"]}

    @extend_schema(operation_id="device_deployments", responses=DeploymentOnDevice(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """What a device shall have, and what it said about it, by the deployments' names."""
        return self.page_of(deployments_on(device_named(self.kwargs["device"])))
