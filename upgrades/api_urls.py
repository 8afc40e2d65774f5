"""Addresses under ``/api/v1/``."""

from django.urls import path

from upgrades.api import agents

ONE = "devices/<str:name>/agent-upgrade/"

urlpatterns = [
    path(ONE, agents.AgentUpgradeOne.as_view(), name="agent-upgrade"),
    path(f"{ONE}retry/", agents.AgentUpgradeRetry.as_view(), name="agent-upgrade-retry"),
    path(f"{ONE}give-up/", agents.AgentUpgradeGiveUp.as_view(), name="agent-upgrade-give-up"),
]
