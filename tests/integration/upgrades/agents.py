"""A fleet whose devices have updaters that can replace the agent; what they say is played by the test."""

from __future__ import annotations

from collections.abc import Iterable

from agent.wire.manifest import AgentUpgrade
from agent.wire.messages import AGENT_UPGRADE_CAPABILITY, APT_FULL_UPGRADE_V1, OCI_ARTIFACT_V1
from devices.models import Device
from tests.integration.tasks.tasks import Tasks
from upgrades import services
from upgrades.models import DesiredAgent

OLD, NEW = "1.3.0", "1.4.0"
CAPABLE = [APT_FULL_UPGRADE_V1, AGENT_UPGRADE_CAPABILITY, OCI_ARTIFACT_V1]


def target(
    version: str = NEW, architecture: str = "amd64", url: str = "https://releases.example.com/agent.tar.gz"
) -> AgentUpgrade:
    return AgentUpgrade(version=version, architecture=architecture, url=url, maxSize=30_000_000, sha256="ab" * 32)  # type: ignore[arg-type]


class Agents(Tasks):
    def machines(self, names: Iterable[str]) -> list[Device]:
        """Devices that have reported the old agent and can have it replaced."""
        rows = self.updaters(names)
        for row in rows:
            self.reports_facts(row, agent_version=OLD, architecture="amd64", capabilities=CAPABLE)
        return rows

    def machine(self, name: str = "edge-1") -> Device:
        return self.machines([name])[0]

    def reports_facts(self, device: Device, **facts: object) -> None:
        """The device says this of itself, and the control plane has taken it in."""
        Device.objects.filter(pk=device.pk).update(**facts)
        device.refresh_from_db()

    def wants(self, device: Device, wanted: AgentUpgrade | None = None) -> DesiredAgent:
        services.agent_upgrade_set(device=device, target=wanted or target(), actor=None)
        return self.stands(device)

    def sweeps(self, device: Device) -> DesiredAgent:
        """The periodic look at everything."""
        services.agents_evaluate()
        return self.stands(device)

    def offered(self, device: Device) -> list[str]:
        """As a device sees it once the transactions' leftovers are tidied up."""
        services.attempts_tidy()
        return super().offered(device)

    def stands(self, device: Device) -> DesiredAgent:
        return DesiredAgent.objects.select_related("attempt").get(device=device)

    def attempts(self, device: Device) -> list[str]:
        """States of the agent upgrades of this device, oldest first."""
        own = device.attempts.filter(executor="agentUpgradeV1").order_by("pk")
        return list(own.values_list("state", flat=True))
