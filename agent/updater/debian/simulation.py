"""What apt would do, from what it prints: pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.updater.machine import BOOT, ROOT, VAR, Simulation

_KIBIBYTE = 1024
#: ``Inst name [old] (new origin [arch])``: without an old version the package is new.
_INST = re.compile(r"^Inst (?P<name>[a-z0-9][a-z0-9+.:-]*)(?: \[(?P<old>[^]\s]+)\])? \((?P<new>[^\s)]+)")
_REMV = re.compile(r"^(?:Remv|Purg) (?P<name>[a-z0-9][a-z0-9+.:-]*)")
_KERNEL = re.compile(r"^linux-image-\d")
#: Packages whose upgrade writes the initial file system anew.
_INITRD_WRITERS = (
    "initramfs-tools",
    "initramfs-tools-core",
    "dracut",
    "dracut-core",
    "busybox",
    "cryptsetup-initramfs",
)


@dataclass(frozen=True, slots=True)
class Change:
    """A package that would be installed or upgraded, as apt's simulation names it."""

    name: str
    new: str
    old: str = ""

    @property
    def is_kernel(self) -> bool:
        return bool(_KERNEL.match(self.name))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a simulation prints of importance."""

    changes: tuple[Change, ...] = ()
    removes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one package in bytes: its archive, and what it takes unpacked."""

    archive: int = 0
    unpacked: int = 0


@dataclass(frozen=True, slots=True)
class Boot:
    """What a kernel takes in ``/boot``, by those that are there; ``initrd`` is 0 where none is."""

    kernel: int = 0
    initrd: int = 0


def outcome(text: str) -> Outcome:
    """Read ``apt-get --simulate``. A package named with its architecture keeps only its name."""
    changes: dict[str, Change] = {}
    removes: dict[str, None] = {}
    for line in text.splitlines():
        if found := _INST.match(line):
            name = found["name"].partition(":")[0]
            changes[name] = Change(name, found["new"], found["old"] or "")
        elif found := _REMV.match(line):
            removes[found["name"].partition(":")[0]] = None
    return Outcome(tuple(changes.values()), tuple(removes))


def candidate_sizes(text: str) -> dict[str, Sizes]:
    """Sizes by package from ``apt-cache show``; what can't be read counts as 0."""
    sizes: dict[str, Sizes] = {}
    for paragraph in text.split("\n\n"):
        fields = dict(_fields(paragraph))
        if name := fields.get("Package"):
            sizes[name] = Sizes(_number(fields.get("Size")), _number(fields.get("Installed-Size")) * _KIBIBYTE)
    return sizes


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed package; ``unpacked`` in bytes."""

    name: str
    version: str
    unpacked: int


def installed(text: str) -> list[Installed]:
    """Read what ``dpkg-query`` prints for :data:`~agent.updater.debian.commands.INSTALLED`."""
    found = []
    for line in text.splitlines():
        status, _, rest = line.partition(" ")
        name, version, *size = rest.split(" ")[:3] if status == "installed" else ("", "")
        if name:
            found.append(Installed(name, version, _number(size[0] if size else "") * _KIBIBYTE))
    return found


def simulated(found: Outcome, new: Mapping[str, Sizes], old: Iterable[Installed], boot: Boot) -> Simulation:
    """The space is an upper bound: dpkg keeps a package's old files until its new ones are there."""
    before = {package.name: package.unpacked for package in old}
    grown = largest = archives = 0
    for change in found.changes:
        sizes = new.get(change.name, Sizes())
        archives += sizes.archive
        grown += max(0, sizes.unpacked - before.get(change.name, 0))
        largest = max(largest, sizes.unpacked)
    upgrades = sum(1 for change in found.changes if change.old)
    return Simulation(
        upgrades=upgrades,
        installs=len(found.changes) - upgrades,
        removes=found.removes,
        needs={ROOT: grown + largest, VAR: archives, BOOT: _boot_needs(found.changes, boot)},
    )


def _boot_needs(changes: Iterable[Change], boot: Boot) -> int:
    kernels = sum(change.is_kernel for change in changes)
    if kernels:
        return kernels * (boot.kernel + boot.initrd)
    return boot.initrd if any(change.name in _INITRD_WRITERS for change in changes) else 0


def _fields(paragraph: str) -> Iterable[tuple[str, str]]:
    for line in paragraph.splitlines():
        key, colon, value = line.partition(":")
        if colon and not key[:1].isspace():
            yield key, value.strip()


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
