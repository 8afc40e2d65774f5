"""Small Debian packages made on the spot, and a repository of them that a machine can upgrade from."""

from __future__ import annotations

import functools
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

#: Tells the hanging package to go on.
GO = "/run/harmony-test-go"


@dataclass(frozen=True, slots=True)
class Package:
    """``scripts`` are maintainer scripts by name; ``fields`` further control fields; ``files`` contents by path."""

    name: str
    version: str
    scripts: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    def build(self, folder: Path) -> Path:
        """Make the .deb in this folder; its path."""
        tree = folder / f".{self.name}_{self.version}"
        control = tree / "DEBIAN"
        control.mkdir(parents=True)
        fields = {"Architecture": "all", "Maintainer": "Tests <tests@example.com>", "Description": "made by a test"}
        lines = {"Package": self.name, "Version": self.version, **fields, **self.fields}
        (control / "control").write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))
        for name, script in self.scripts.items():
            (control / name).write_text(f"#!/bin/sh\n{script}\n")
            (control / name).chmod(0o755)
        for path, content in {f"usr/share/{self.name}/version": self.version.encode(), **self.files}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(content)
        made = folder / f"{'_'.join((self.name, self.version, lines['Architecture']))}.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(made)]
        subprocess.run(command, check=True, capture_output=True)
        shutil.rmtree(tree)
        return made


def good(version: str) -> Package:
    return Package("harmony-good", version)


def failing(version: str) -> Package:
    """Its newer version's maintainer script fails until somebody mends what it complains about."""
    check = "[ -e /run/harmony-test-mended ] || { echo 'harmony-failing: no good configuration' >&2; exit 1; }"
    return Package("harmony-failing", version, scripts={"postinst": check} if version != "1" else {})


def hanging(version: str) -> Package:
    """Its newer version's maintainer script waits for :data:`GO`."""
    wait = f"echo harmony-hanging waits; while [ ! -e {GO} ]; do sleep 0.05; done"
    return Package("harmony-hanging", version, scripts={"postinst": wait} if version != "1" else {})


def large(version: str) -> Package:
    """Its newer version says that it needs more than any disk of ours has: 40 TB."""
    return Package("harmony-large", version, fields={"Installed-Size": "40000000000"} if version != "1" else {})


def hostile_to_podman(version: str) -> Package:
    """Its newer version can't be there together with Podman."""
    return Package("harmony-hostile", version, fields={"Conflicts": "podman"} if version != "1" else {})


def filling(version: str) -> Package:
    """Its newer version brings 4 MB into ``/opt/full``."""
    size = 4_000_000 if version != "1" else 10
    return Package("harmony-filling", version, files={"opt/full/content": b"\0" * size})


class Repository:
    """A folder that apt can read over HTTP. ``publish`` replaces what is offered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def publish(self, *packages: Package, debs: Iterable[Path] = ()) -> None:
        """Offer these, and ``debs`` as they are."""
        for old in self.folder.glob("*"):
            old.unlink()
        for package in packages:
            package.build(self.folder)
        for deb in debs:
            shutil.copy(deb, self.folder)
        for name, words in (("Packages", ["packages", "."]), ("Release", ["release", "."])):
            done = subprocess.run(["apt-ftparchive", *words], cwd=self.folder, check=True, capture_output=True)
            (self.folder / name).write_bytes(done.stdout)

    @contextmanager
    def served(self, host: str) -> Iterator[str]:
        """The line for a machine's sources.list, while the repository is served at one of this host's addresses."""
        handler = functools.partial(_Quiet, directory=str(self.folder))
        with ThreadingHTTPServer((host, 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield f"deb [trusted=yes] http://{host}:{server.server_port} ./"
            finally:
                server.shutdown()
                thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        """What was published again within a second counts as news."""
        del self.headers["If-Modified-Since"]
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Tests look at what the machine says."""
