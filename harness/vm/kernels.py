"""Two real kernels of one flavour from this host's Debian: one to begin with, and a newer one to upgrade to."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

META = "linux-image-cloud-amd64"


@dataclass(frozen=True, slots=True)
class Kernel:
    """``packages`` are the .debs: the one that depends on the newest, and the kernel itself."""

    version: str
    release: str
    packages: tuple[Path, ...]


def two(folder: Path) -> tuple[Kernel, Kernel]:
    """An older and a newer one, fetched into this folder.

    Raises:
        RuntimeError: Debian offers only one at the moment.
    """
    versions = sorted(_versions(), key=functools.cmp_to_key(_order))
    if len(versions) < 2:
        raise RuntimeError(f"this host's apt offers one version of {META} only, so there is nothing to upgrade to")
    old, new = (_fetched(version, folder) for version in (versions[0], versions[-1]))
    return old, new


def _versions() -> set[str]:
    lines = _output(["apt-cache", "madison", META]).splitlines()
    return {line.split("|")[1].strip() for line in lines if line.count("|") == 2}


def _order(one: str, other: str) -> int:
    newer = subprocess.run(["dpkg", "--compare-versions", one, "gt", other], check=False).returncode == 0
    return 1 if newer else -1


def _fetched(version: str, folder: Path) -> Kernel:
    target = folder / version
    target.mkdir(parents=True)
    depends = _output(["apt-cache", "show", f"{META}={version}"]).partition("Depends: ")[2].split()[0]
    for name in (META, depends):
        subprocess.run(
            ["apt-get", "--quiet", "download", f"{name}={version}"], cwd=target, check=True, capture_output=True
        )
    return Kernel(version, depends.removeprefix("linux-image-"), tuple(sorted(target.glob("*.deb"))))


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
