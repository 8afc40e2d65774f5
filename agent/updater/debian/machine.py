"""The machine under the updater: Debian 12 or newer with systemd (SYS-1, SYS-2, SYS-4)."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.clock import SystemClock
from agent.updater.debian import commands, kernels, locks
from agent.updater.debian.simulation import (
    Boot,
    Change,
    Installed,
    Key,
    Outcome,
    Sizes,
    candidate_sizes,
    installed,
    outcome,
    simulated,
)
from agent.updater.debian.space import volume
from agent.updater.debian.units import Units
from agent.updater.machine import FOLDERS, Job, JobStatus, MachineError, Simulation, Volume
from agent.wording import printable

_DPKG_UPDATES = Path("/var/lib/dpkg/updates")
_DPKG_INFO = Path("/var/lib/dpkg/info")
_WRITES_INITRD = re.compile(rb"^[^#\n]*\b(?:update-initramfs|dracut)\b", re.MULTILINE)
_BOOT = Path("/boot")
_NEEDED = ("/usr/bin/apt-get", "/usr/bin/dpkg", "/usr/bin/systemd-run", "/run/systemd/system")
#: Name and version as apt's own simulation printed them, before they go back to it.
_WORD = re.compile(r"[a-z0-9][A-Za-z0-9+.:~_-]*")
#: On a slow device with many packages; together with the rest no more than the 10 minutes of the protocol.
_SIMULATION_SECONDS, _SIZES_SECONDS = 300.0, 180.0
_MAX_PROBLEM_CHARS = 1500


class DebianMachine:
    """Implements :class:`agent.updater.machine.Machine`. ``state_dir`` is root's alone."""

    def __init__(self, state_dir: Path) -> None:
        self._units = Units(state_dir / "output")
        self.start = self._units.start
        self.stop = self._units.stop

    # Clocks

    def boot_id(self) -> str:
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError as error:
            raise MachineError(f"the kernel does not say its boot id: {error.strerror}") from None

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        return SystemClock().now()

    # What is there

    def can_upgrade(self) -> bool:
        return all(Path(path).exists() for path in _NEEDED)

    def running_kernel(self) -> str:
        return os.uname().release

    def expected_kernel(self) -> str | None:
        names = (package.name for package in self._installed())
        return kernels.newest(self.running_kernel(), kernels.releases(names), _is_newer)

    def package_problems(self) -> str:
        """``dpkg --audit`` does not look at a journal that dpkg left behind when it was cut off; we do."""
        problems = printable(commands.audit()).strip()
        if _left_by_dpkg():
            problems = f"dpkg was interrupted while it wrote its database\n{problems}".strip()
        return problems[:_MAX_PROBLEM_CHARS]

    def lock_holder(self) -> str:
        try:
            return locks.holder(locks.LOCKS)
        except OSError as error:
            raise MachineError(f"{error.filename}: {error.strerror}") from None

    def volumes(self) -> Mapping[str, Volume]:
        return {folder: volume(Path(folder)) for folder in FOLDERS}

    def simulation(self) -> Simulation:
        text = commands.output(commands.SIMULATE, limit_seconds=_SIMULATION_SECONDS)
        found = outcome(text)
        return simulated(found, _sizes(found), self._installed(), _boot())

    # What runs beside the updater: start and stop are the units' own

    def observe(self, attempt: str, job: Job) -> JobStatus:
        return self._units.observe(attempt, job)

    # The device

    def reboot(self) -> None:
        self._units.end_leftovers()
        commands.output(commands.REBOOT)

    def _installed(self) -> list[Installed]:
        return installed(commands.output(commands.INSTALLED))


def _is_newer(one: str, other: str) -> bool:
    return commands.code([*commands.IS_NEWER, one, "gt", other], codes=(0, 1)) == 0


def _left_by_dpkg() -> bool:
    try:
        return any(name.isdigit() for name in os.listdir(_DPKG_UPDATES))
    except OSError:
        return False


def _sizes(found: Outcome) -> dict[Key, Sizes]:
    words = [f"{change.printed}={change.new}" for change in found.changes]
    odd = next((change for change in found.changes if not _is_plain(change)), None)
    if odd:
        raise MachineError(f"apt speaks of {odd.printed!r} {odd.new!r}, which is no name and version of a package")
    if not words:
        return {}
    return candidate_sizes(commands.output([*commands.SHOW, *words], limit_seconds=_SIZES_SECONDS))


def _is_plain(change: Change) -> bool:
    return bool(_WORD.fullmatch(change.printed) and _WORD.fullmatch(change.new))


def _boot() -> Boot:
    """As large as the largest that is there: the next one will not be much larger."""
    return Boot(
        kernel=sum(_largest(kind) for kind in ("vmlinuz-*", "System.map-*", "config-*")),
        initrd=_largest("initrd.img-*"),
        writers=frozenset(_initrd_writers()),
    )


def _initrd_writers() -> Iterator[str]:
    """Installed packages that call for a new initial file system in a script or by a trigger."""
    for path in sorted(_DPKG_INFO.glob("*.postinst")) + sorted(_DPKG_INFO.glob("*.triggers")):
        with contextlib.suppress(OSError):
            if _WRITES_INITRD.search(path.read_bytes()):
                yield path.stem.partition(":")[0]


def _largest(pattern: str) -> int:
    try:
        return max((path.stat().st_size for path in _BOOT.glob(pattern)), default=0)
    except OSError:
        return 0
