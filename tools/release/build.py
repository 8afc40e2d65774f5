"""Build the archive of a release: agent and updater with a Python of their own, for this machine's architecture.

    python tools/release/build.py [--version V] [--folder dist]

The same commit gives the same archive, byte for byte, on the same Debian with the same lock file: times come from
SOURCE_DATE_EPOCH or the commit, the archive is sorted and belongs to root.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
#: A release may be given another version than the source's, to show an upgrade from one to another.
VERSION = re.compile(r"\d+\.\d+\.\d+(?:[a-z0-9.+-]{0,32})")


def main() -> int:
    options = _parser().parse_args()
    if not VERSION.fullmatch(options.version):
        print(f"--version: found {options.version!r}; allowed: like 1.2.3 or 1.2.3-rc.1", file=sys.stderr)
        return 2
    built = _source_time()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        release = _freeze(Path(work), built)
        _describe(release, options.version, built)
        archive = options.folder / f"harmony-fleet-{options.version}-linux-{_architecture()}.tar.gz"
        _pack(release, f"harmony-fleet-{options.version}", archive, built)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    print(f"{archive}  {archive.stat().st_size / 1e6:.1f} MB\nsha256 {digest}")
    return 0


def _parser() -> argparse.ArgumentParser:
    sys.path.insert(0, str(ROOT))
    from agent.version import SOURCE  # noqa: PLC0415  (only after the path knows the source)

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", default=SOURCE, help="of the release (default: the source's, %(default)s)")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where it goes (default: dist)")
    return parser


def _architecture() -> str:
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def _source_time() -> int:
    """Unix seconds of the source, which is as near as one comes to when a reproducible release was built."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _freeze(work: Path, built: int) -> Path:
    # The order of sets and dictionaries of names must not get into what is compiled.
    env = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": str(built)}
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level", "WARN"]
    command += ["--distpath", str(work / "dist"), "--workpath", str(work / "build"), str(HERE / "release.spec")]
    subprocess.run(command, check=True, env=env, cwd=work)
    return work / "dist" / "release"


def _describe(release: Path, version: str, built: int) -> None:
    """``release.json``: what setup and updater need to know before they run anything of it."""
    import msgspec  # noqa: PLC0415

    from agent.formats import FORMATS  # noqa: PLC0415  (only after the path knows the source)

    about = {
        "version": version,
        "architecture": _architecture(),
        "built": built,
        "formats": msgspec.to_builtins(FORMATS),
        "files": {path.relative_to(release).as_posix(): _digest(path) for path in _files(release)},
    }
    (release / "release.json").write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _pack(release: Path, top: str, archive: Path, built: int) -> None:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=built, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in (release, *sorted(release.rglob("*"))):
            tar.add(path, Path(top) / path.relative_to(release), recursive=False, filter=_plain(built))
    archive.write_bytes(packed.getvalue())


def _plain(built: int) -> Callable[[tarfile.TarInfo], tarfile.TarInfo]:
    """What of a file depends on who built it and when is taken away."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = built
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    return plain


if __name__ == "__main__":
    sys.exit(main())
