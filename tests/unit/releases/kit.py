"""Releases and their archives, made for a test: good ones, and such as nobody would build."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from agent.releases.description import DESCRIPTION, Release
from agent.wire.manifest import AgentUpgrade

VERSION = "1.4.0"
TOP = f"harmony-fleet-{VERSION}"
FILES = {"fleet-agent": b"#!/bin/sh\n", "_internal/library.so": b"\x7fELF" * 100, "_internal/empty": b""}

Member = tuple[tarfile.TarInfo, bytes]


def described(files: Mapping[str, bytes] | None = None, version: str = VERSION, architecture: str = "amd64") -> Release:
    listed = {name: hashlib.sha256(data).hexdigest() for name, data in (FILES if files is None else files).items()}
    return Release(version, architecture, 0.0, listed)


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: object) -> Member:
    """``fields`` are those of :class:`tarfile.TarInfo`."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def link(name: str, target: str) -> Member:
    return member(name, kind=tarfile.SYMTYPE, linkname=target)


def members(
    files: Mapping[str, bytes] | None = None, about: Release | None = None, top: str = f"{TOP}/"
) -> list[Member]:
    """A release as it is packed; programs are those that are called fleet-something."""
    files = FILES if files is None else files
    about = about or described(files)
    return [
        *(
            member(f"{top}{name}", data, mode=0o755 if name.startswith("fleet-") else 0o644)
            for name, data in files.items()
        ),
        member(f"{top}{DESCRIPTION}", msgspec.json.encode(about)),
    ]


def tar(packed: Iterable[Member], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as file:
        for info, data in packed:
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def archive(packed: Iterable[Member], form: int = tarfile.PAX_FORMAT) -> bytes:
    return gzip.compress(tar(packed, form), compresslevel=1)


def target(data: bytes, **other: object) -> AgentUpgrade:
    """What a device is told of an archive; ``other`` says something else than the truth."""
    truth = {
        "version": VERSION,
        "architecture": "amd64",
        "url": "https://example.com/release.tar.gz",
        "maxSize": max(len(data), 4096),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return AgentUpgrade(**{**truth, **other})  # type: ignore[arg-type]


def lay(folder: Path, files: Mapping[str, bytes] | None = None, version: str = VERSION) -> Path:
    """A release in a folder, as an upgrade leaves it."""
    for name, data in (FILES if files is None else files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / DESCRIPTION).write_bytes(msgspec.json.encode(described(files, version)))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below it, by name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
