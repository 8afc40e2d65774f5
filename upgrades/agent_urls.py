"""The agent-facing address of an attempt; beside those of ``devices``."""

from django.urls import path

from upgrades import agent_api

urlpatterns = [path("attempts/<str:uid>", agent_api.offer)]
