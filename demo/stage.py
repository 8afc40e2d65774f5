"""Everything that the demo starts, in one place that takes it down again in the right order."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from demo import images
from demo.podman import IsolatedPodman
from demo.registry import LoopbackRegistry
from harness.control_plane import ControlPlane

#: Files here are the demo's only trace; the folder is short because a Unix socket's path may have 107 bytes.
PREFIX = "fleet-demo-"


@dataclass
class Stage:
    """A temporary folder, a control plane and, on a host that can, a Podman with a registry."""

    folder: Path
    control_plane: ControlPlane
    exits: contextlib.ExitStack
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    podman: IsolatedPodman | None = None
    no_podman_because: str = ""

    @property
    def admin(self) -> str:
        return "admin"


@contextlib.contextmanager
def built() -> Iterator[Stage]:
    """A stage that leaves no process, container, mount or file, however the demo ends."""
    with contextlib.ExitStack() as exits:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        exits.callback(shutil.rmtree, folder, ignore_errors=True)
        env = {
            "FLEET_DATA_DIR": str(folder / "data"),
            "FLEET_STALE_SECONDS": "15",
            "FLEET_OFFLINE_SECONDS": "30",
            "FLEET_SWEEP_SECONDS": "1",
        }
        control_plane = exits.enter_context(ControlPlane(folder / "logs", env=env))
        stage = Stage(folder, control_plane, exits)
        _bring_podman(stage)
        yield stage


def _bring_podman(stage: Stage) -> None:
    if os.geteuid() != 0:
        stage.no_podman_because = "the demo's own Podman needs root"
        return
    try:
        registry = stage.exits.enter_context(LoopbackRegistry(stage.folder / "registry"))
        podman = IsolatedPodman(
            stage.folder / "podman",
            insecure_registries=[registry.address],
            stand_ins={images.REGISTRY: registry.address},
        )
        stage.podman = stage.exits.enter_context(podman)
        images.publish(podman, registry.address)
    except (FileNotFoundError, TimeoutError, RuntimeError, subprocess.SubprocessError) as error:
        stage.podman = None
        stage.no_podman_because = str(error).splitlines()[0]


def prepare_database(stage: Stage) -> None:
    """Create the tables and a superuser with a password made for this run."""
    stage.control_plane.manage("migrate", "--verbosity", "0")
    stage.control_plane.env["DJANGO_SUPERUSER_PASSWORD"] = stage.password
    stage.control_plane.manage("createsuperuser", "--noinput", "--username", stage.admin, "--email", "admin@localhost")
    del stage.control_plane.env["DJANGO_SUPERUSER_PASSWORD"]
