"""What the agent asks of a container runtime, in plain data; implemented by ``podman`` and ``simulated``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from agent.wire.ports import PortMapping


class RuntimeFailure(Exception):
    """The runtime refused or failed; the message has the runtime's own words."""


class RuntimeUnreachable(RuntimeFailure):
    """No answer: no socket, no service behind it, or none within the time limit."""


class ImageUnavailable(RuntimeFailure):
    """An image that is not here could not be fetched; the message has the registry's own words."""


class LoginRefused(ImageUnavailable):
    """The registry wants a login, or another one than it got."""


class State(StrEnum):
    """What a container is doing.

    ``LOST`` is one that the runtime calls running although its process is gone: its monitor was killed. ``GHOST`` is
    none at all, only an entry in storage that blocks its name: it has no labels and can only be removed (P1).
    """

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXITED = "exited"
    LOST = "lost"
    GHOST = "ghost"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Mount:
    host_path: str
    container_path: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A container to create; ``image`` is the reference to run, pinned to its digest when there is one.

    ``env`` may hold secrets, so that it shows in no ``repr``.
    """

    name: str
    image: str
    restart_policy: str
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    ports: tuple[PortMapping, ...] = ()
    mounts: tuple[Mount, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Container:
    """A container that exists, ours or not. Times are Unix seconds, 0 when it has not happened.

    ``health`` is empty when the image has no health check. ``restarts`` and ``log`` (the last lines) are known after
    :meth:`Runtime.inspect` only.
    """

    id: str
    name: str
    state: State
    image_id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[PortMapping, ...] = ()
    created_at: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    exit_code: int = 0
    health: str = ""
    restarts: int = 0
    log: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image in local storage; ``digests`` are all that registries know it by, the one to pin first.

    ``names`` are the references that it has here, as the runtime writes them; none when a tag moved on to another, and
    known after :meth:`Runtime.images` only.
    """

    id: str
    digests: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Login:
    """Who the agent is to one registry (``host[:port]``); the password shows in no log and no error."""

    registry: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a container's log; ``is_cut`` when the lines asked for were larger than the limit."""

    text: str
    is_cut: bool = False


class Runtime(Protocol):
    """Every call has a time limit and raises :class:`RuntimeFailure` or one of its kinds; all are safe in threads."""

    def version(self) -> str:
        """The runtime's version, such as ``4.3.1``."""

    def lowest_port(self) -> int:
        """The lowest host port that containers may publish: without root a runtime may not have them all."""

    def containers(self) -> list[Container]:
        """All containers of this runtime, foreign ones and ghosts too, in one cheap call."""

    def inspect(self, container_id: str) -> Container | None:
        """One container with ``restarts``, exact times and the end of its log; ``None`` when it is gone."""

    def image(self, reference: str) -> Image | None:
        """The local image behind a reference or an id; ``None`` when it is not here."""

    def images(self) -> list[Image]:
        """All images of this runtime, also those without a name, in one cheap call."""

    def probe(self, reference: str, login: Login | None = None) -> None:
        """Ask the registry for an image without fetching it; raises :class:`ImageUnavailable`."""

    def pull(self, reference: str, login: Login | None = None) -> Image:
        """Fetch an image; raises :class:`ImageUnavailable`, of the kind :class:`LoginRefused` when that is why."""

    def remove_image(self, image_id: str) -> None:
        """Remove an image with all its names; nothing happens when it is gone.

        Raises:
            RuntimeFailure: when a container, running or not, is made of it. Then nothing was removed.
        """

    def logs(self, container_id: str, lines: int, limit: int) -> LogTail:
        """The last ``lines`` of what a container said, of them at most the last ``limit`` bytes."""

    def create(self, spec: ContainerSpec) -> str:
        """Create a container without starting it; its id."""

    def start(self, container_id: str) -> None:
        """Start it; nothing happens when it runs already."""

    def unpause(self, container_id: str) -> None: ...

    def stop(self, container_id: str, seconds: int) -> None:
        """Ask it to end, kill it after ``seconds``; nothing happens when it does not run or is gone."""

    def remove(self, container_id: str) -> None:
        """Remove it by force; nothing happens when it is gone."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A local address that some process of the host holds."""

    host_ip: str
    port: int
    protocol: str


class Host(Protocol):
    """What the agent must know of the machine beside its containers."""

    def boot_id(self) -> str:
        """Of this boot, as the kernel writes it; empty when it does not say."""

    def listeners(self) -> Collection[Listener]:
        """All TCP and UDP ports that processes of the host hold."""

    def is_missing(self, path: str) -> bool:
        """Whether it is certain that nothing is at this path."""
