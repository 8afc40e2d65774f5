"""A device whose real agent runs, and whose updater is asked to replace it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from agent.setup.layout import AGENT_STATE, AGENT_UNIT, PODMAN_SOCKET, USER
from agent.store import Identity, Store
from agent.wire.manifest import AgentUpgrade
from agent.wire.updater import Begin, BeginAgentUpgrade, Standing
from harness.vm.device import UPDATER_UNIT, Device
from harness.vm.nspawn import Machine
from harness.waiting import wait_until

LINK, RELEASES = "opt/harmony-fleet/active", "opt/harmony-fleet/releases"
_AGENT_TOML = """\
[server]
url = "{url}"
ca_file = "/etc/harmony-fleet/ca.pem"

[device]
id = "edge-1"

[agent]
state_dir = "{state}"
poll_seconds = 1
heartbeat_seconds = 2
pass_seconds = 5
settle_seconds = 1

[runtime]
kind = "podman"
socket = "{socket}"
"""
SECONDS = 60.0


class UpgradableDevice(Device):
    """``target`` is what the next attempt is about."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.target: AgentUpgrade | None = None

    def enrol(self, url: str, credential: str, authority: Path) -> None:
        """As ``fleet-agent setup`` with a token would leave it, with an agent that does everything often."""
        root = self.machine.root
        text = _AGENT_TOML.format(url=url, state=AGENT_STATE, socket=PODMAN_SOCKET)
        (root / "etc/harmony-fleet/agent.toml").write_text(text)
        (root / "etc/harmony-fleet/ca.pem").write_bytes(authority.read_bytes())
        Store(root / AGENT_STATE.lstrip("/")).save_identity(Identity("edge-1", "1", url), credential)
        self.machine.run("chown", "--recursive", f"{USER}:{USER}", AGENT_STATE)
        self.machine.run("systemctl", "enable", "--now", AGENT_UNIT)

    def set_limits(self, **seconds: float) -> None:
        """Of ``[agent_upgrade]`` in the updater's configuration; the updater is started anew with them."""
        lines = "".join(f"{name} = {value}\n" for name, value in seconds.items())
        (self.machine.root / "etc/harmony-fleet/updater.toml").write_text(f"[agent_upgrade]\n{lines}")
        self.machine.run("systemctl", "restart", UPDATER_UNIT)

    def intent(self, remaining_seconds: int) -> Begin | BeginAgentUpgrade:
        if self.target is None:
            return super().intent(remaining_seconds)
        return BeginAgentUpgrade(self.attempt, remaining_seconds, self.target)

    def upgrade(self) -> Standing:
        """Offer it the target as a new attempt, and wait for its end."""
        self.attempt = ""
        self.begin()
        return self.wait_for_end()

    # What is there -------------------------------------------------------------------------------------------------

    def active(self) -> str:
        """Where the link leads, read from outside; also of a machine that is off."""
        return os.readlink(self.machine.root / LINK).removeprefix("releases/")

    def releases(self) -> list[str]:
        """What is kept, unfinished ones too."""
        return sorted(os.listdir(self.machine.root / RELEASES))

    def version(self) -> str:
        """The version that the running agent's executable says it has."""
        said = self.machine.run("/opt/harmony-fleet/active/fleet-agent", "version").stdout
        return said.split()[-1]

    def agent_runs(self) -> bool:
        """Whether the unit's process is the one that ``active`` leads to."""
        with suppress(RuntimeError, OSError, ValueError):
            pid = self.agent_pid()
            there = self.machine.root / RELEASES / self.active()
            executable = os.readlink(f"/proc/{pid}/exe")
            return executable.endswith(("/fleet-agent", "/fleet-agent.real")) and there.name in executable
        return False

    def agent_pid(self) -> int:
        """The agent's process, as this host counts."""
        shown = self.machine.run("systemctl", "show", "--property=MainPID", "--value", AGENT_UNIT).stdout
        return self.machine.pid_outside(int(shown))

    def kill_agent(self) -> None:
        os.kill(self.agent_pid(), signal.SIGKILL)

    def wait_for_agent(self) -> None:
        wait_until(self.agent_runs, seconds=SECONDS, what="the agent runs", every=0.2)

    def podman(self, *words: str) -> str:
        """Ask the agent's Podman; what it prints."""
        as_agent = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--"]
        command = [*as_agent, "podman", "--remote", "--url", f"unix://{PODMAN_SOCKET}", *words]
        return self.machine.run(*command).stdout
