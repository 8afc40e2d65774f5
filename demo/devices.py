"""The demo's devices: their configuration, their enrolment and their agents, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.control_plane import ROOT
from harness.process import ManagedProcess

LABELS = {"role": "analyzer"}


@dataclass(frozen=True, slots=True)
class DemoDevice:
    """One device: its id, where its files are, and how its agent is configured."""

    name: str
    folder: Path
    config: Path

    def agent(self, *arguments: str) -> list[str]:
        """The command line of its agent."""
        return [sys.executable, "-m", "agent", "--config", str(self.config), *arguments]


def prepare(folder: Path, name: str, *, server: str, socket: Path | None, waiting: str = "") -> DemoDevice:
    """Write a device's configuration: real Podman behind ``socket``, or simulated without one.

    ``waiting`` is where it waits, if not at ``server``, as no proxy is between the demo's devices and its processes.
    Intervals are short, so that a person can watch; a real device keeps the defaults. None has an updater: the usual
    socket may be the one of the machine on which the demo runs, which nobody wants to upgrade and reboot.
    """
    home = folder / name
    home.mkdir(parents=True)
    runtime = f'kind = "podman"\nsocket = "{socket}"' if socket else 'kind = "simulated"'
    labels = "\n".join(f'{key} = "{value}"' for key, value in LABELS.items())
    config = home / "agent.toml"
    config.write_text(
        f'[server]\nurl = "{server}"\nwait_url = "{waiting}"\nwait_spread_seconds = 0.2\n\n'
        f'[device]\nid = "{name}"\n\n[device.labels]\n{labels}\n\n'
        f'[agent]\nstate_dir = "{home / "state"}"\n'
        "poll_seconds = 1\nheartbeat_seconds = 3\npass_seconds = 2\nsettle_seconds = 3\npull_jitter_seconds = 1\n\n"
        f'[updater]\nsocket = "{home / "no-updater.sock"}"\n\n'
        f"[runtime]\n{runtime}\n"
    )
    return DemoDevice(name, home, config)


def enrol(device: DemoDevice, token: str) -> None:
    """Exchange the token for a credential of the device's own; the token never appears in a process list.

    Raises:
        RuntimeError: when the control plane refuses; the message has its words.
    """
    done = subprocess.run(
        device.agent("enroll", "--token-file", "-"),
        cwd=ROOT,
        input=token,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{device.name} could not enrol: {done.stdout}{done.stderr}")


def start_agents(devices: Sequence[DemoDevice]) -> list[ManagedProcess]:
    """Start every device's agent."""
    processes = []
    for device in devices:
        process = ManagedProcess(device.name, device.agent("run"), log=device.folder / "agent.log", cwd=ROOT)
        process.start()
        processes.append(process)
    return processes
