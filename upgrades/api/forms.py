"""What goes out, as serializers: OpenAPI is drawn from them."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.api import additions
from devices.selectors import relate
from fleet.core.openapi import manifest_component
from upgrades.models import DesiredAgent, Standing, State


@extend_schema_field(manifest_component("AgentUpgrade"))
class AgentUpgradeField(serializers.JSONField):
    """The agent that the device shall run; none when it keeps what it has."""


class AgentUpgradeStatus(serializers.Serializer[DesiredAgent]):
    """Where the wanted agent stands; none when the device keeps what it has."""

    state = serializers.ChoiceField(Standing.choices)
    since = serializers.DateTimeField(source="state_since")
    message = serializers.CharField(help_text="What it waits for or how it ended, in one sentence.")
    generation = serializers.IntegerField(help_text="Grows with each change of the wanted agent.")
    setAt = serializers.DateTimeField(source="set_at")
    setBy = serializers.CharField(source="set_by")
    attempt = serializers.UUIDField(
        source="attempt.uid", allow_null=True, help_text="The last one for this target; none before it was offered."
    )
    attemptState = serializers.ChoiceField(State.choices, source="attempt.state", allow_null=True)
    step = serializers.CharField(source="attempt.step", allow_null=True, help_text="Where the updater is, or was.")


def show_with_devices() -> None:
    """Let every device's object have its wanted agent; called once, when the apps are ready."""
    relate("desired_agent__attempt")
    wanted = AgentUpgradeField(source="desired_agent.spec", read_only=True, allow_null=True)
    additions.add_field("spec", "agentUpgrade", wanted)
    standing = AgentUpgradeStatus(source="desired_agent", read_only=True, allow_null=True)
    additions.add_field("status", "agentUpgrade", standing)
