"""Programs of the operating system that the harness starts, and the Debian packages they come from."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_PACKAGES = {
    "podman": "podman",
    "docker-registry": "docker-registry",
    "busybox": "busybox-static",
    "redis-server": "redis-server",
    "initdb": "postgresql",
    "postgres": "postgresql",
    "chromium": "chromium",
    "wrk": "wrk",
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "qemu-system-x86_64": "qemu-system-x86",
    "mke2fs": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "etcd": "etcd-server",
    "kubectl": "kubernetes-client",
}
#: No package of Debian has it as a program; tools/kube-apiserver builds it.
_BUILT = {"kube-apiserver": "run make test-cluster, which builds it once, or set KUBEBUILDER_ASSETS"}
#: Debian keeps PostgreSQL's own programs off the path, a folder per version.
_POSTGRESQL = Path("/usr/lib/postgresql")


class ProgramMissing(FileNotFoundError):
    """A program that is not installed; the message names its Debian package."""


def program(name: str) -> Path:
    """The path of a program.

    Raises:
        ProgramMissing: when it is not installed.
    """
    if found := _given(name) or shutil.which(name) or _newest_of_postgresql(name):
        return Path(found)
    advice = f"on Debian: apt-get install --no-install-recommends {_PACKAGES.get(name, name)}"
    raise ProgramMissing(f"the program {name} is not installed; {_BUILT.get(name, advice)}")


def _given(name: str) -> str | None:
    """Of a cluster's programs, the folder that ``KUBEBUILDER_ASSETS`` names goes first."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return shutil.which(name, path=folder) if folder else None


def _newest_of_postgresql(name: str) -> Path | None:
    versions = [path for path in _POSTGRESQL.glob("*") if path.name.isdigit() and (path / "bin" / name).exists()]
    newest = max(versions, key=lambda path: int(path.name), default=None)
    return newest / "bin" / name if newest else None
