"""What apt would do, from what it prints: pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.updater.debian.kernels import releases
from agent.updater.machine import BOOT, ROOT, VAR, Simulation

_KIBIBYTE = 1024
#: ``Inst name [old] (new origin [architecture])``: without an old version the package is new.
_INST = re.compile(
    r"^Inst (?P<name>[a-z0-9][a-z0-9+.:-]*)(?: \[(?P<old>[^]\s]+)\])? "
    r"\((?P<new>[^\s)]+)(?:[^)]* \[(?P<architecture>[a-z0-9-]+)\]\))?"
)
_INSTALLED_WORDS = 4
_REMV = re.compile(r"^(?:Remv|Purg) (?P<name>[a-z0-9][a-z0-9+.:-]*)")
#: What is in the initial file system, and so writes it anew also when it is installed for the first time.
_INITRD_PARTS = re.compile(r"^(?:firmware-.*|.*-microcode|initramfs-tools.*|dracut.*|cryptsetup-initramfs)$")
#: The initial file system is packed from a folder in ``/var/tmp``, where it is this much larger.
_UNPACKED_INITRD = 4


@dataclass(frozen=True, slots=True)
class Change:
    """A package that would be installed or upgraded.

    ``printed`` is its name as apt's simulation has it, for a foreign architecture ``libc6:i386``.
    """

    printed: str
    new: str
    old: str = ""
    architecture: str = ""

    @property
    def name(self) -> str:
        return self.printed.partition(":")[0]

    @property
    def is_kernel(self) -> bool:
        return bool(releases([self.name]))


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
    """What a kernel takes in ``/boot``, by those that are there; ``initrd`` is 0 where none is.

    ``writers`` are the installed packages that write the initial file system anew when they are upgraded.
    """

    kernel: int = 0
    initrd: int = 0
    writers: frozenset[str] = frozenset()


#: A package's name and architecture: several architectures of one may be installed.
Key = tuple[str, str]


def outcome(text: str) -> Outcome:
    """Read ``apt-get --simulate``. What is removed keeps only its name, whatever its architecture."""
    changes: dict[str, Change] = {}
    removes: dict[str, None] = {}
    for line in text.splitlines():
        if found := _INST.match(line):
            name = found["name"]
            changes[name] = Change(name, found["new"], found["old"] or "", found["architecture"] or "")
        elif found := _REMV.match(line):
            removes[found["name"].partition(":")[0]] = None
    return Outcome(tuple(changes.values()), tuple(removes))


def candidate_sizes(text: str) -> dict[Key, Sizes]:
    """Read ``apt-cache show``; what can't be read counts as 0, and of several versions the largest."""
    sizes: dict[Key, Sizes] = {}
    for paragraph in text.split("\n\n"):
        fields = dict(_fields(paragraph))
        key = (fields.get("Package", ""), fields.get("Architecture", ""))
        if not key[0]:
            continue
        before = sizes.get(key, Sizes())
        archive, unpacked = _number(fields.get("Size")), _number(fields.get("Installed-Size")) * _KIBIBYTE
        sizes[key] = Sizes(max(before.archive, archive), max(before.unpacked, unpacked))
    return sizes


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed package; ``unpacked`` in bytes."""

    name: str
    architecture: str
    unpacked: int


def installed(text: str) -> list[Installed]:
    """Read what ``dpkg-query`` prints for :data:`~agent.updater.debian.commands.INSTALLED`."""
    found = []
    for line in text.splitlines():
        words = line.split(" ")
        if words[0] == "installed" and len(words) >= _INSTALLED_WORDS:
            found.append(Installed(words[1], words[2], _number(words[3]) * _KIBIBYTE))
    return found


def simulated(found: Outcome, new: Mapping[Key, Sizes], old: Iterable[Installed], boot: Boot) -> Simulation:
    """The space is an upper bound: dpkg keeps a package's old files until its new ones are there."""
    before = {(package.name, package.architecture): package.unpacked for package in old}
    grown = largest = archives = kernels = 0
    for change in found.changes:
        key = (change.name, change.architecture)
        sizes = new.get(key, Sizes())
        archives += sizes.archive
        grown += max(0, sizes.unpacked - (before.get(key, 0) if change.old else 0))
        largest = max(largest, sizes.unpacked)
        kernels += (boot.kernel + boot.initrd or sizes.archive) if change.is_kernel else 0
    upgrades = sum(1 for change in found.changes if change.old)
    rewritten, packing = _initrds(found.changes, boot)
    return Simulation(
        upgrades=upgrades,
        installs=len(found.changes) - upgrades,
        removes=found.removes,
        needs={ROOT: grown + largest, VAR: archives + packing, BOOT: kernels + rewritten},
    )


def _initrds(changes: Iterable[Change], boot: Boot) -> tuple[int, int]:
    """Bytes in ``/boot`` to write an initial file system anew, beside its old self, and elsewhere to pack any."""
    rewrites = any(change.name in boot.writers or _INITRD_PARTS.match(change.name) for change in changes)
    packs = rewrites or any(change.is_kernel for change in changes)
    return rewrites * boot.initrd, packs * boot.initrd * _UNPACKED_INITRD


def _fields(paragraph: str) -> Iterable[tuple[str, str]]:
    for line in paragraph.splitlines():
        key, colon, value = line.partition(":")
        if colon and not key[:1].isspace():
            yield key, value.strip()


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
