"""A Debian of its own for real apt and dpkg: package database, lists, archives and files below one folder.

Nothing of the host's is touched: apt is led there by a configuration file, dpkg by its folder and root.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.updater.debian import commands, locks, machine
from harness.vm.packages import Package, Repository

_CONFIGURATION = """\
Dir "{root}";
Dir::State::status "{root}/var/lib/dpkg/status";
Dir::Log::Terminal "";
Dir::Bin::dpkg "/usr/bin/dpkg";
Dir::Bin::Methods "/usr/lib/apt/methods";
DPkg::Options {{ "--root={root}"; "--force-not-root"; "--force-script-chrootless"; "--log=/dev/null"; }};
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; "i386"; }};
APT::Sandbox::User "root";
Acquire::Retries "0";
"""
_FOLDERS = (
    "etc/apt/apt.conf.d",
    "etc/apt/preferences.d",
    "etc/apt/trusted.gpg.d",
    "etc/apt/sources.list.d",
    "var/lib/dpkg/updates",
    "var/lib/dpkg/info",
    "var/lib/apt/lists/partial",
    "var/cache/apt/archives/partial",
    "var/log/apt",
    "boot",
)


@dataclass
class SmallDebian:
    """``repository`` is what its apt reads; :meth:`environment` leads apt and dpkg here."""

    root: Path

    def __post_init__(self) -> None:
        for folder in _FOLDERS:
            (self.root / folder).mkdir(parents=True)
        for name in ("status", "available"):
            (self.root / "var/lib/dpkg" / name).touch()
        (self.root / "var/lib/dpkg/arch").write_text("amd64\ni386\n")
        self.configuration.write_text(_CONFIGURATION.format(root=self.root))
        self.repository = Repository(self.root / "repository")
        self.repository.publish()
        self.sources(f"deb [trusted=yes] file:{self.repository.folder} ./")

    @property
    def configuration(self) -> Path:
        return self.root / "etc/apt/small.conf"

    @property
    def environment(self) -> dict[str, str]:
        return {"APT_CONFIG": str(self.configuration), "DPKG_ADMINDIR": str(self.root / "var/lib/dpkg")}

    def sources(self, *lines: str) -> None:
        """What its sources.list says."""
        (self.root / "etc/apt/sources.list").write_text("".join(f"{line}\n" for line in lines))

    def install(self, *packages: Package) -> None:
        """Install them, each of which has to succeed."""
        done = self.dpkg("--install", *(str(self._built(package)) for package in packages))
        assert done.returncode == 0, done.stderr

    def _built(self, package: Package) -> Path:
        folder = self.root / "built"
        folder.mkdir(exist_ok=True)
        return package.build(folder)

    def dpkg(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run dpkg on it, whatever comes of it."""
        options = (f"--root={self.root}", "--force-not-root", "--force-script-chrootless", "--log=/dev/null")
        return self.run(["/usr/bin/dpkg", *options, *words])

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run one of the updater's command lines on it, in the updater's environment."""
        return subprocess.run(
            command,
            env={**commands.ENVIRONMENT, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def lead(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the real machine's programs and files be those of here; the host's kernel and disks stay."""
        monkeypatch.setattr(commands, "ENVIRONMENT", {**commands.ENVIRONMENT, **self.environment})
        monkeypatch.setattr(machine, "_DPKG_UPDATES", self.root / "var/lib/dpkg/updates")
        monkeypatch.setattr(machine, "_DPKG_INFO", self.root / "var/lib/dpkg/info")
        monkeypatch.setattr(machine, "_BOOT", self.root / "boot")
        monkeypatch.setattr(locks, "LOCKS", tuple(f"{self.root}{path}" for path in locks.LOCKS))
