"""Where the server is and who we are: command line, then environment, then the file that ``login`` writes."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from fleet.ctl.errors import Exit, Refused

OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class Config:
    """What a command needs to reach the server; empty texts are unknown."""

    server: str = ""
    token: str = ""
    ca_file: str = ""


def path() -> Path:
    """``$XDG_CONFIG_HOME/fleetctl/config.toml``, by default under ``~/.config``."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "fleetctl" / "config.toml"


def load(*, server: str = "", ca_file: str = "") -> Config:
    """The configuration, each value from the first place that has it.

    A stored token is for the stored server alone: it is never sent to another one.

    Raises:
        Refused: when the file can't be read.
    """
    stored = _stored()
    wanted = (server or os.environ.get("FLEETCTL_SERVER", "") or stored.server).rstrip("/")
    token = os.environ.get("FLEETCTL_TOKEN", "") or (stored.token if wanted == stored.server else "")
    trusted = ca_file or os.environ.get("FLEETCTL_CA_FILE", "") or (stored.ca_file if wanted == stored.server else "")
    return Config(wanted, token, trusted)


def _stored() -> Config:
    try:
        values = tomllib.loads(path().read_text())
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise Refused(f"{path()} can't be read: {error}; remove it and log in again", Exit.USAGE) from None
    known = {name: value for name, value in values.items() if name in asdict(Config()) and isinstance(value, str)}
    return Config(**known)


def save(config: Config) -> Path:
    """Write the file, readable by its owner alone from the first byte on."""
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in asdict(config).items() if value)
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
    with os.fdopen(descriptor, "w") as out:
        out.write(text)
    beside.replace(file)
    return file
