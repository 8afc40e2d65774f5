"""From apply to containers that run on one online device, against bare create and start of the same containers."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from agent.runtime.base import ContainerSpec, State
from agent.runtime.podman import PodmanRuntime
from bench import fleet
from bench.figures import Figure
from bench.installation import Installation
from demo import devices as demo_devices
from demo.podman import IsolatedPodman
from devices.models import Heartbeat
from fleet.core import door
from harness.process import ManagedProcess
from harness.waiting import wait_until
from rollouts import services

SERVICES = 3
ROUNDS = 5
ALLOWANCE_SECONDS = 2.0
IMAGE = "localhost/bench:1"
NAME = "applies-1"
LOOK_SECONDS = 0.02


def measure(installation: Installation) -> list[Figure]:
    """Each round applies a new deployment of three services, then creates and starts three alike by hand."""
    control_plane = installation.control_plane
    server = control_plane.web()
    waiting = control_plane.waiting()
    control_plane.worker()
    control_plane.beat()
    with IsolatedPodman(installation.folder / "podman") as podman:
        podman.build(IMAGE, command=["sleep", "100000"])
        device = demo_devices.prepare(installation.folder / "devices", NAME, server=server, socket=podman.socket)
        _wait_for_news(device.config, waiting)
        demo_devices.enrol(device, fleet.token(NAME, labels={"role": "applies"}))
        with ManagedProcess("agent", device.agent("run"), log=installation.folder / "agent.log") as agent:
            agent.start()
            online = Heartbeat.objects.filter(device__name=NAME, connectivity="online")
            wait_until(online.exists, seconds=60, what="the device is online")
            return _measured(PodmanRuntime(str(podman.socket)))


def _wait_for_news(config: Path, waiting: str) -> None:
    """The defaults of a real device: it polls every ten seconds and is told of changes in between."""
    text = config.read_text().replace("poll_seconds = 1\n", "poll_seconds = 10\n")
    config.write_text(text.replace("[server]\n", f'[server]\nwait_url = "{waiting}"\n'))


def _measured(runtime: PodmanRuntime) -> list[Figure]:
    runtime.image(IMAGE)
    ours, bare = [], []
    for number in range(ROUNDS):
        ours.append(_applied(runtime, f"applied-{number}"))
        bare.append(_created(runtime, f"bare-{number}"))
    print(f"apply to running: {_texts(ours)}; bare: {_texts(bare)}", file=sys.stderr)
    floor = statistics.median(bare) + ALLOWANCE_SECONDS
    return [
        Figure(
            f"apply to {SERVICES} containers running, image present",
            statistics.median(ours),
            floor,
            "s",
            1,
            False,
            f"bare create and start, {statistics.median(bare):.2f} s, and 2 s",
        )
    ]


def _applied(runtime: PodmanRuntime, name: str) -> float:
    wanted = {f"{name}-{number}" for number in range(SERVICES)}
    manifest = {
        "apiVersion": "fleet.nationtech.io/v1alpha1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "allowedGroups": [fleet.GROUP],
            "targetSelector": {"matchLabels": {"role": "applies"}},
            "score": {
                "type": "PodmanV0",
                "data": {"services": [{"name": each, "image": IMAGE} for each in sorted(wanted)]},
            },
        },
    }
    start = time.perf_counter()
    (admitted,) = door.admit(json.dumps(manifest))
    services.deployment_apply(manifest=admitted, actor=None)

    def all_run() -> bool:
        return wanted <= {c.name for c in runtime.containers() if c.state is State.RUNNING}

    wait_until(all_run, seconds=60, what=f"{name} runs", every=LOOK_SECONDS)
    return time.perf_counter() - start


def _created(runtime: PodmanRuntime, name: str) -> float:
    start = time.perf_counter()
    for number in range(SERVICES):
        runtime.start(runtime.create(ContainerSpec(f"{name}-{number}", IMAGE, "unless-stopped")))
    return time.perf_counter() - start


def _texts(seconds: list[float]) -> str:
    return " ".join(f"{each:.2f}" for each in seconds) + " s"
