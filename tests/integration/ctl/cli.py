"""The real program, as a script calls it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support import command
from tests.support.command import Done


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
        given = stdin.encode() if isinstance(stdin, str) else stdin
        return command.run("fleet.ctl", arguments, env={**self.env, **env}, stdin=given)
