"""Releases made of the one under test: other versions of it, and such as should never become an agent."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.wire.manifest import AgentUpgrade

_DESCRIPTION = "release.json"
_AGENT, _REAL = "fleet-agent", "fleet-agent.real"

Change = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Archive:
    """A packed release, and what its description says."""

    path: Path
    version: str
    architecture: str

    def target(self, url: str, **other: Any) -> AgentUpgrade:
        """What a device is told of it when it lies at ``url``; ``other`` says something else than the truth."""
        data = self.path.read_bytes()
        truth = {
            "version": self.version,
            "architecture": self.architecture,
            "url": url,
            "maxSize": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        return AgentUpgrade(**{**truth, **other})


class Workshop:
    """Unpacks the release under test once, and packs it again as others want it."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self._folder = folder
        self._original = folder / "original"
        self._original.mkdir(parents=True)
        _tar("--extract", "--file", str(archive), "--directory", str(self._original), "--strip-components=1")

    def pack(self, version: str, change: Change = lambda release: None, **description: Any) -> Archive:
        """The same programs as ``version``. ``change`` gets the folder before its files are listed; ``description``
        replaces what ``release.json`` says. Compressed little, because it is unpacked at once.
        """
        name = f"{version}-{len(list(self._folder.iterdir()))}"
        release = self._folder / name / f"harmony-fleet-{version}"
        release.parent.mkdir()
        subprocess.run(["cp", "--archive", "--link", str(self._original), str(release)], check=True)
        change(release)
        about = json.loads((release / _DESCRIPTION).read_text())
        about |= {"version": version, "files": _digests(release), **description}
        replace(release / _DESCRIPTION, json.dumps(about))
        packed = self._folder / f"{name}.tar.gz"
        _tar("--create", "--owner=0", "--group=0", "--use-compress-program=gzip -1", "--file", str(packed),
             "--directory", str(release.parent), release.name)  # fmt: skip
        return Archive(packed, version, str(about["architecture"]))


def with_members(archive: Archive, *members: tarfile.TarInfo) -> Archive:
    """The same archive with further members, which may be such as ``tar`` would never make."""
    path = archive.path.with_name(f"{len(members)}-{members[0].name.replace('/', '_')}-{archive.path.name}")
    with (
        gzip.open(archive.path) as packed,
        tarfile.open(fileobj=packed, mode="r|") as old,
        gzip.open(path, "wb", compresslevel=1) as fresh,
        tarfile.open(fileobj=fresh, mode="w|") as new,
    ):
        for member in old:
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
        for member in members:
            new.addfile(member, io.BytesIO(bytes(member.size)) if member.isfile() else None)
    return Archive(path, archive.version, archive.architecture)


def odd(name: str, type_: bytes = tarfile.REGTYPE, *, size: int = 0) -> tarfile.TarInfo:
    """A member of that name, with so many zeros in it."""
    member = tarfile.TarInfo(name)
    member.type, member.size = type_, size
    return member


def replace(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file whose other names keep their content."""
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)


def behaves(**instead: str) -> Change:
    """An agent that does these commands by a shell script, with underscores for dashes, and all others as it is.

    In a script ``"$real"`` is the agent as it was built.
    """

    def change(release: Path) -> None:
        (release / _AGENT).rename(release / _REAL)
        replace(release / _AGENT, _script(instead), 0o755)

    return change


def _script(instead: Mapping[str, str]) -> str:
    cases = "".join(f"{name.replace('_', '-')}) {script} ;;\n" for name, script in instead.items())
    find = 'real="$(dirname "$(readlink -f "$0")")/' + _REAL + '"'
    return f'#!/bin/sh\n{find}\ncase "$1" in\n{cases}esac\nexec "$real" "$@"\n'


def _digests(release: Path) -> dict[str, str]:
    files = [path for path in sorted(release.rglob("*")) if path.is_file() and not path.is_symlink()]
    return {
        path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != _DESCRIPTION
    }


def _tar(*arguments: str) -> None:
    subprocess.run(["tar", *arguments], check=True)
