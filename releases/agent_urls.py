"""Addresses under ``/api/agent/v1/``."""

from django.urls import path

from releases import agent_api

urlpatterns = [path("releases/<str:sha256>", agent_api.archive)]
