"""Addresses under ``/api/v1/``."""

from django.urls import path

from rollouts.api import deployments, logs, manifests

ONE = "namespaces/<str:namespace>/deployments/<str:name>/"

urlpatterns = [
    path("manifests/", manifests.Manifests.as_view(), name="manifests"),
    path("devices/<str:device>/deployments/", deployments.DeploymentsOnDevice.as_view(), name="device-deployments"),
    path("deployments/", deployments.DeploymentList.as_view(), name="deployment-list"),
    path(ONE, deployments.DeploymentOne.as_view(), name="deployment"),
    path(f"{ONE}targets/", deployments.DeploymentTargets.as_view(), name="deployment-targets"),
    path(f"{ONE}revisions/", deployments.DeploymentRevisions.as_view(), name="deployment-revisions"),
    path(f"{ONE}manifest/", deployments.DeploymentManifest.as_view(), name="deployment-manifest"),
    path(f"{ONE}retarget/", deployments.DeploymentRetarget.as_view(), name="deployment-retarget"),
    path(f"{ONE}end/", deployments.RolloutEnd.as_view(), name="rollout-end"),
    path(f"{ONE}forget-device/", deployments.DeploymentForgetDevice.as_view(), name="deployment-forget-device"),
    path(f"{ONE}logs/", logs.Logs.as_view(), name="logs"),
    path(f"{ONE}logs/<str:id>/", logs.LogOne.as_view(), name="log"),
]
