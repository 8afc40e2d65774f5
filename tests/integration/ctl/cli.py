"""The real program, as a script calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


class Fleetctl:
    """Runs ``python -m fleet.ctl`` with a settings folder of its own."""

    def __init__(self, server: str, home: Path) -> None:
        self.server, self.home = server, home
        self.env = {**os.environ, "FLEETCTL_SERVER": server, "XDG_CONFIG_HOME": str(home)}
        self.env.pop("FLEETCTL_TOKEN", None)

    @property
    def config(self) -> Path:
        return self.home / "fleetctl" / "config.toml"

    def __call__(self, *arguments: str, stdin: str | bytes = "", **env: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "fleet.ctl", *arguments],
            env={**self.env, **env},
            cwd=ROOT,
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
