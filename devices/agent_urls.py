"""The agent-facing API, version 1; what a device needs and nothing else."""

from django.urls import path

from devices import agent_api

urlpatterns = [
    path("enroll", agent_api.enroll),
    path("desired", agent_api.desired),
    path("documents/<str:hash>", agent_api.desired_document),
    path("report", agent_api.report),
]
