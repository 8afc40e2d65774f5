"""The agent's configuration: one TOML file, and complaints that name key and line (AGT-13)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, field

from agent.complaint import at, complaint
from agent.runtime.simulated import Faults
from agent.wire import names
from agent.wire.images import REGISTRY
from agent.wire.manifest import DeviceName, Labels, SecretRef
from agent.wire.updater import DEFAULT_SOCKET

DEFAULT_PATH = Path("/etc/harmony-fleet/agent.toml")
MAX_CONFIG_BYTES = 1_048_576

Interval = Annotated[float, Meta(ge=0.2, le=86_400)]
Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]
RegistryName = Annotated[str, Meta(pattern=REGISTRY)]


class ConfigError(Exception):
    """The file cannot be used; the message has path, line, key, what was found and what is allowed."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the tables of the file."""


class Server(Section, frozen=True):
    """``ca_file``: certificate authorities to trust instead of the system's; ``proxy``: an HTTP proxy on the way.

    With ``wait`` the agent lets the control plane tell it of changes at once, where the waiting entrance is served;
    ``wait_url`` is needed only when it has another address than ``url``. It polls within ``wait_spread_seconds`` after
    that, at random, because many are told at the same moment.
    """

    url: Annotated[str, Meta(pattern=r"^https?://[^\s/]+(/[^\s]*)?$")]
    ca_file: str = ""
    proxy: Annotated[str, Meta(pattern=r"^(https?://[^\s/]+/?)?$")] = ""
    wait: bool = True
    wait_url: Annotated[str, Meta(pattern=r"^(https?://[^\s/]+(/[^\s]*)?)?$")] = ""
    wait_spread_seconds: Seconds = 1.0


class Device(Section, frozen=True):
    id: DeviceName
    labels: Labels = {}


class Timing(Section, frozen=True):
    """Seconds. ``init_timeout_seconds`` 0 means that an init container may take for ever (AGT-2)."""

    state_dir: str = "/var/lib/harmony-fleet/agent"
    poll_seconds: Interval = 10.0
    heartbeat_seconds: Interval = 30.0
    pass_seconds: Interval = 30.0
    settle_seconds: Seconds = 10.0
    init_timeout_seconds: Seconds = 0.0
    pull_jitter_seconds: Seconds = 5.0


class Secrets(Section, frozen=True):
    """``directory`` holds ``<secret>/<key>`` files, readable for the agent and for nobody who has no right to them."""

    directory: Annotated[str, Meta(pattern="^/")] = "/etc/harmony-fleet/secrets"


class Registry(Section, frozen=True):
    """How to log in to one registry: the password is the value of a secret on this device (AGT-15)."""

    username: Annotated[str, Meta(min_length=1, max_length=256)]
    password: SecretRef


class Images(Section, frozen=True):
    """Images that the agent fetched and that nothing uses any more go after ``prune_after_seconds``; 0 keeps them."""

    prune_after_seconds: Seconds = 259_200.0


class Containers(Section, frozen=True):
    """``log_megabytes``: how large a container's log may grow before its beginning goes; 0 means no limit."""

    log_megabytes: Annotated[float, Meta(ge=0, le=100_000)] = 20.0


class UpdaterPlace(Section, frozen=True):
    """``socket``: where this device's root updater listens."""

    socket: Annotated[str, Meta(pattern="^/", max_length=107)] = DEFAULT_SOCKET


class RuntimeChoice(Section, frozen=True):
    """``kind`` is ``podman`` or, for demos and tests, ``simulated``, which runs nothing."""

    kind: Annotated[str, Meta(pattern="^(podman|simulated)$")] = "podman"
    socket: str = "/run/podman/podman.sock"
    simulated: Faults = field(default_factory=Faults)


class Config(Section, frozen=True):
    server: Server
    device: Device
    agent: Timing = Timing()
    runtime: RuntimeChoice = RuntimeChoice()
    secrets: Secrets = Secrets()
    registries: dict[RegistryName, Registry] = {}
    images: Images = Images()
    containers: Containers = Containers()
    updater: UpdaterPlace = UpdaterPlace()

    @property
    def state_dir(self) -> Path:
        return Path(self.agent.state_dir)


T = TypeVar("T", bound=msgspec.Struct)


def load(path: Path) -> Config:
    """Read a file.

    Raises:
        ConfigError: when it is missing, not TOML, or has a wrong, unknown or missing key.
    """
    return parse(read(path), str(path))


def parse(text: str, name: str = "agent.toml") -> Config:
    """As :func:`load`, from text; ``name`` is how complaints call the file."""
    config = checked(text, name, Config)
    if not names.fits(names.DNS_LABEL, config.device.id):
        raise ConfigError(f"{name}: {at(text, ('device', 'id'), 'is no RFC 1123 label')}")
    return config


def read(path: Path) -> str:
    """The text of a configuration. Raises ConfigError when it cannot be read, is too large or not UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: line {_line_of(data, error.start)}: is not UTF-8 text") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_CONFIG_BYTES} bytes")
    return text


def checked(text: str, name: str, type_: type[T]) -> T:
    """TOML text as ``type_``. Raises ConfigError, which calls the file ``name``, for whatever does not fit."""
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{name}: is not TOML: {error}") from None

    def convert(value: dict[str, object]) -> T:
        return msgspec.convert(value, type_)

    try:
        return convert(raw)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {complaint(str(error), raw, text, convert, type_)}") from None


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
