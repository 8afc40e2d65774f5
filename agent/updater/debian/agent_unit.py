"""The agent's own unit, as systemd tells of it."""

from __future__ import annotations

from agent.clock import SystemClock
from agent.setup.layout import AGENT_UNIT
from agent.updater.binary.host import AgentStatus
from agent.updater.debian.commands import output
from agent.updater.debian.transient import SYSTEMCTL, show

_SHOWN = ("ActiveState", "SubState", "NRestarts", "ExecMainStartTimestampMonotonic")


def stop() -> None:
    """Return when its processes are gone; containers have units of their own. Raises MachineError."""
    output([SYSTEMCTL, "stop", AGENT_UNIT])


def start() -> None:
    """Ask for it without waiting: what it comes after, such as the network, may take its time after a boot.

    Restarts are counted from here: systemd forgets those of before, and any reason not to start it.

    Raises:
        MachineError: systemd can't be asked, or has no such unit.
    """
    output([SYSTEMCTL, "reset-failed", AGENT_UNIT], codes=(0, 1))
    output([SYSTEMCTL, "start", "--no-block", AGENT_UNIT])


def status() -> AgentStatus:
    """Raises MachineError when systemd can't be asked."""
    found = show(AGENT_UNIT, _SHOWN)
    is_running = (found["ActiveState"], found["SubState"]) == ("active", "running")
    started = int(found["ExecMainStartTimestampMonotonic"] or 0) / 1e6
    seconds = max(0.0, SystemClock().monotonic() - started) if is_running else 0.0
    return AgentStatus(is_running, int(found["NRestarts"] or 0), seconds)
