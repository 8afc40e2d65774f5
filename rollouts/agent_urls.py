"""The agent-facing addresses that take a deployment to answer; beside those of ``devices``."""

from django.urls import path

from rollouts import agent_api

urlpatterns = [
    path("secrets", agent_api.secrets),
    path("logs", agent_api.logs),
]
