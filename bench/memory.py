"""What the agent holds resident at rest with ten deployments that use a secret, on real Podman."""

from __future__ import annotations

import sys
import time

import psutil

from bench import fleet
from bench.figures import Figure
from bench.installation import Installation
from demo import devices as demo_devices
from demo.podman import IsolatedPodman
from devices.models import Device
from harness.process import ManagedProcess
from harness.waiting import wait_until
from rollouts.models import Target
from vault.services import secret_put

DEPLOYMENTS = 10
LIMIT_BYTES = 45e6
REST_SECONDS = 15
IMAGE = "localhost/bench:1"


def measure(installation: Installation) -> list[Figure]:
    """Resident set and CPU of the agent's process after everything has converged."""
    control_plane = installation.control_plane
    server, waiting = control_plane.web(), control_plane.waiting()
    control_plane.worker()
    control_plane.beat()
    with IsolatedPodman(installation.folder / "podman") as podman:
        podman.build(IMAGE, command=["sleep", "100000"])
        device = demo_devices.prepare(
            installation.folder / "devices", "memory-1", server=server, socket=podman.socket, waiting=waiting
        )
        demo_devices.enrol(device, fleet.token("memory", labels={"role": "memory"}))
        Device.objects.filter(name="memory-1").update(labels={"role": "memory"})
        with ManagedProcess("agent", device.agent("run"), log=installation.folder / "agent.log") as agent:
            agent.start()
            return _at_rest(agent)


def _at_rest(agent: ManagedProcess) -> list[Figure]:
    secret_put(namespace="default", name="memory", values={"password": "hunter2"}, registry="", actor=None)
    for number in range(DEPLOYMENTS):
        fleet.applied(f"memory-{number}", "memory", IMAGE, secret=("memory", "password"))
    rows = Target.objects.filter(device_name="memory-1", state="converged")
    wait_until(lambda: rows.count() == DEPLOYMENTS, seconds=180, what="ten deployments have converged", every=0.5)
    process = psutil.Process(agent.pid)
    before = process.cpu_times()
    time.sleep(REST_SECONDS)
    after = process.cpu_times()
    share = (after.user + after.system - before.user - before.system) / REST_SECONDS
    print(f"the agent at rest uses {share:.2%} of one core with the demo's intervals of 1 to 3 s", file=sys.stderr)
    resident = process.memory_info().rss
    return [
        Figure("agent at rest, ten deployments, resident", resident / 1e6, LIMIT_BYTES / 1e6, "MB", 1, False, "limit")
    ]
