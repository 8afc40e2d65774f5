"""Archives of releases, and of other things."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import Any


def archive(version: str = "1.2.3", architecture: str = "amd64", **files: bytes) -> bytes:
    """As ``make agent-release`` builds them, as far as a shelf looks; ``files`` by name, ``release_json`` replaced."""
    about = files.pop("release_json", json.dumps({"version": version, "architecture": architecture}).encode())
    members = {"fleet-agent": b"#!", "release.json": about, **files}
    return packed({f"harmony-fleet-{version}/{name}": body for name, body in members.items()})


def packed(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for name, body in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


def form(body: bytes, **fields: str) -> dict[str, Any]:
    return {"file": io.BytesIO(body), **fields}


def long_headed(kind: bytes, size: int) -> bytes:
    """An archive whose first header says that so many bytes more of it follow."""
    header = tarfile.TarInfo("a/x")
    header.type, header.size = kind, size
    return gzip.compress(header.tobuf(format=tarfile.GNU_FORMAT) + b"a" * size)
