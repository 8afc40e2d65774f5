"""What a device must have before its packages are touched (SYS-2). Pure: what was found in, sentences out."""

from __future__ import annotations

from collections.abc import Mapping

from agent.updater.machine import BOOT, ROOT, VAR, Simulation, Volume
from agent.wording import utc

#: What the fleet needs of a device, so that no upgrade may remove it.
PROTECTED = (
    "podman",
    "conmon",
    "crun",
    "runc",
    "netavark",
    "aardvark-dns",
    "slirp4netns",
    "fuse-overlayfs",
    "uidmap",
    "dbus",
    "dbus-user-session",
    "systemd",
    "systemd-sysv",
    "libpam-systemd",
    "openssh-server",
    "apt",
    "dpkg",
)
#: Bytes without which not even the package lists can be fetched.
LEAST_BYTES = {ROOT: 64_000_000, VAR: 128_000_000, BOOT: 0}


def clock_problem(now: float, built: float) -> str:
    """A clock before the day on which this release was built is wrong, and no signature of a repository holds then."""
    if now >= built:
        return ""
    return f"the clock says {utc(now)}, but this release was built on {utc(built)}; set the clock"


def space_problems(needs: Mapping[str, int], volumes: Mapping[str, Volume]) -> list[str]:
    """One sentence for each file system that is too small for what the folders on it need together (U2, U3)."""
    problems = []
    for filesystem in dict.fromkeys(volume.filesystem for volume in volumes.values()):
        folders = [folder for folder, volume in volumes.items() if volume.filesystem == filesystem]
        needed = sum(needs.get(folder, 0) for folder in folders)
        free = volumes[folders[0]].free_bytes
        if needed > free:
            concerned = [folder for folder in folders if needs.get(folder)]
            problems.append(f"{' and '.join(concerned)} needs {needed:,} bytes and has {free:,} free")
    return problems


def simulation_problems(simulation: Simulation, volumes: Mapping[str, Volume]) -> list[str]:
    """What speaks against the upgrade that was simulated."""
    removed = [name for name in simulation.removes if name in PROTECTED]
    problems = [f"it would remove {', '.join(removed)}, which the fleet needs"] if removed else []
    return problems + space_problems(simulation.needs, volumes)


def simulation_summary(simulation: Simulation) -> str:
    """What the upgrade comes to, in one sentence."""
    count = f"{simulation.upgrades} to upgrade, {simulation.installs} new, {len(simulation.removes)} to remove"
    needs = ", ".join(f"{folder} {needed:,} bytes" for folder, needed in simulation.needs.items() if needed)
    return f"Packages: {count}; needs {needs or 'no space'}"
