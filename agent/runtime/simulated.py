"""A container runtime that runs nothing: for demos and tests of many devices, with faults on demand.

It obeys the protocol of :mod:`agent.runtime.base`, shown by the same contract tests as the real one. Services run
until they are told to exit, init containers end by themselves. With ``state_file`` its containers survive a restart
of the agent, as Podman's do.
"""

from __future__ import annotations

import fnmatch
import hashlib
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from agent.clock import Clock, SystemClock
from agent.reconcile.labels import INIT, ROLE
from agent.runtime.base import (
    Container,
    ContainerSpec,
    Image,
    ImageUnavailable,
    Listener,
    Login,
    LoginRefused,
    LogTail,
    RuntimeFailure,
    RuntimeUnreachable,
    State,
)
from agent.runtime.log_tail import tail

VERSION = "simulated"
MOST_LINES = 100


class Faults(msgspec.Struct, forbid_unknown_fields=True):
    """What goes wrong; lists are shell patterns that a container's name or image reference matches.

    ``fail_pull``: the registry does not have the image. ``private``: it wants a login for it. ``fail_init``: the init
    container exits with code 1. ``exit_services``: the service exits with code 1 as soon as it was started.
    ``hang``: pull and start do not answer for ``hang_seconds``. ``lie``: start succeeds, but nothing runs.
    ``slow_seconds``: every change takes as long. ``init_seconds``: how long an init container runs.
    ``unreachable``: there is no runtime at all.
    """

    fail_pull: list[str] = []
    private: list[str] = []
    fail_init: list[str] = []
    exit_services: list[str] = []
    hang: list[str] = []
    lie: list[str] = []
    hang_seconds: float = 3600.0
    slow_seconds: float = 0.0
    init_seconds: float = 0.0
    unreachable: bool = False


class _Record(msgspec.Struct):
    """One simulated container as it is kept; ``ends_at`` is when it exits by itself (0: never)."""

    container: Container
    image: str
    restart_policy: str
    ends_at: float = 0.0
    ends_with: int = 0
    said: list[str] = []


class _Saved(msgspec.Struct):
    containers: dict[str, _Record] = {}
    images: dict[str, str] = {}
    count: int = 0


class SimulatedRuntime:
    """Containers in memory. ``faults`` may be changed at any time; :meth:`wake` ends what hangs."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        faults: Faults | None = None,
        state_file: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.faults = faults or Faults()
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._file = state_file
        self._lock = threading.RLock()
        self._awake = threading.Event()
        self._saved = _load(state_file)

    # Faults and drift, for tests and demos -------------------------------------------------------------------------

    def wake(self) -> None:
        """End every call that hangs, now and in future; each fails as if its time limit had passed."""
        self._awake.set()

    def end(self, container_id: str, exit_code: int) -> None:
        """A container's process ends by itself."""
        with self._lock:
            self._exit(self._known(container_id), exit_code)
            self._save()

    # The protocol --------------------------------------------------------------------------------------------------

    def version(self) -> str:
        self._reach()
        return VERSION

    def lowest_port(self) -> int:
        return 1

    def containers(self) -> list[Container]:
        self._reach()
        with self._lock:
            return [replace(self._current(record), restarts=0, log="") for record in self._saved.containers.values()]

    def inspect(self, container_id: str) -> Container | None:
        self._reach()
        with self._lock:
            record = self._saved.containers.get(container_id)
            return None if record is None else self._current(record)

    def logs(self, container_id: str, lines: int, limit: int) -> LogTail:
        record = self._known(container_id)
        self._change(record.container.name)
        with self._lock:
            return tail((f"{line}\n".encode() for line in record.said), lines, limit)

    def image(self, reference: str) -> Image | None:
        self._reach()
        known = self._saved.images
        identity = reference if reference in known.values() else known.get(reference)
        return None if identity is None else self._image(identity)

    def images(self) -> list[Image]:
        self._reach()
        with self._lock:
            return [self._named(self._image(identity)) for identity in dict.fromkeys(self._saved.images.values())]

    def probe(self, reference: str, login: Login | None = None) -> None:
        self._reach()
        if login is None and _matches(self.faults.private, reference):
            raise LoginRefused(f"image {reference}: unauthorized: authentication required (simulated)")
        if _matches(self.faults.fail_pull, reference):
            raise ImageUnavailable(f"image {reference}: manifest unknown (simulated)")

    def pull(self, reference: str, login: Login | None = None) -> Image:
        self._change(reference)
        self.probe(reference, login)
        _, _, digest = reference.partition("@sha256:")
        with self._lock:
            self._saved.images[reference] = digest or hashlib.sha256(reference.encode()).hexdigest()
            self._save()
            return self._image(self._saved.images[reference])

    def remove_image(self, image_id: str) -> None:
        self._change()
        with self._lock:
            if any(record.container.image_id == image_id for record in self._saved.containers.values()):
                raise RuntimeFailure(f"image {image_id} is used by a container")
            self._saved.images = {name: known for name, known in self._saved.images.items() if known != image_id}
            self._save()

    def create(self, spec: ContainerSpec) -> str:
        self._change()
        with self._lock:
            image = self.image(spec.image)
            if image is None:
                raise RuntimeFailure(f"{spec.image}: image not known")
            if any(record.container.name == spec.name for record in self._saved.containers.values()):
                raise RuntimeFailure(f'the container name "{spec.name}" is already in use')
            self._saved.count += 1
            identity = hashlib.sha256(f"{self._saved.count} {spec.name}".encode()).hexdigest()
            container = Container(
                id=identity,
                name=spec.name,
                state=State.CREATED,
                image_id=image.id,
                labels=dict(spec.labels),
                ports=spec.ports,
            )
            self._saved.containers[identity] = _Record(container, spec.image, spec.restart_policy)
            self._save()
            return identity

    def start(self, container_id: str) -> None:
        record = self._known(container_id)
        self._change(record.container.name, record.image)
        with self._lock:
            if self._current(record).state is not State.RUNNING and not self._fits("lie", record):
                self._run(record)
                self._save()

    def unpause(self, container_id: str) -> None:
        self._change()
        self._set(self._known(container_id), state=State.RUNNING)

    def stop(self, container_id: str, seconds: int) -> None:
        self._change()
        record = self._saved.containers.get(container_id)
        if record is not None and self._current(record).state in (State.RUNNING, State.PAUSED):
            self.end(container_id, 0)

    def remove(self, container_id: str) -> None:
        self._change()
        with self._lock:
            self._saved.containers.pop(container_id, None)
            self._save()

    # Inside --------------------------------------------------------------------------------------------------------

    def _run(self, record: _Record) -> None:
        now = self._clock.now()
        is_init = record.container.labels.get(ROLE) == INIT
        record.ends_at, record.ends_with = 0.0, 0
        if is_init:
            record.ends_at = now + self.faults.init_seconds
            record.ends_with = 1 if self._fits("fail_init", record) else 0
        elif self._fits("exit_services", record):
            record.ends_at, record.ends_with = now, 1
        self._set(record, state=State.RUNNING, started_at=now, exit_code=0, log="")
        self._say(record, f"simulated start of {record.container.name}")

    @staticmethod
    def _image(identity: str) -> Image:
        return Image(identity, (f"sha256:{identity}",))

    def _named(self, image: Image) -> Image:
        return replace(image, names=tuple(sorted(n for n, known in self._saved.images.items() if known == image.id)))

    def _current(self, record: _Record) -> Container:
        """The container as of now: one whose time has come has exited meanwhile."""
        with self._lock:
            due = record.ends_at and self._clock.now() >= record.ends_at
            if record.container.state is State.RUNNING and due:
                self._exit(record, record.ends_with, at=record.ends_at)
                self._save()
            return record.container

    def _exit(self, record: _Record, exit_code: int, at: float | None = None) -> None:
        log = f"simulated failure of {record.container.name}" if exit_code else ""
        finished = self._clock.now() if at is None else at
        record.ends_at = 0.0
        self._say(record, log or f"simulated end of {record.container.name}")
        self._set(record, state=State.EXITED, finished_at=finished, exit_code=exit_code, log=log)

    @staticmethod
    def _say(record: _Record, line: str) -> None:
        record.said = [*record.said[-MOST_LINES:], line]

    def _set(self, record: _Record, **changes: Any) -> None:
        record.container = replace(record.container, **changes)

    def _known(self, container_id: str) -> _Record:
        try:
            return self._saved.containers[container_id]
        except KeyError:
            raise RuntimeFailure(f"no container with id {container_id}") from None

    def _fits(self, fault: str, record: _Record) -> bool:
        return _matches(getattr(self.faults, fault), record.container.name, record.image)

    def _reach(self) -> None:
        if self.faults.unreachable:
            raise RuntimeUnreachable("the simulated runtime cannot be reached")

    def _change(self, *names: str) -> None:
        self._reach()
        if self.faults.slow_seconds:
            self._sleep(self.faults.slow_seconds)
        if _matches(self.faults.hang, *names):
            self._awake.wait(self.faults.hang_seconds)
            raise RuntimeUnreachable(f"the simulated runtime did not answer within {self.faults.hang_seconds:g} s")

    def _save(self) -> None:
        if self._file is not None:
            temporary = self._file.with_suffix(".new")
            temporary.write_bytes(msgspec.json.encode(self._saved))
            temporary.replace(self._file)


class SimulatedHost:
    """A machine on which nothing else listens and every path exists, unless told otherwise."""

    def __init__(
        self,
        *,
        listeners: Collection[Listener] = (),
        missing: Collection[str] = (),
        boot_id: Callable[[], str] = lambda: "00000000-0000-0000-0000-000000000001",
    ) -> None:
        self.boot_id = boot_id
        self._listeners = frozenset(listeners)
        self._missing = frozenset(missing)

    def listeners(self) -> frozenset[Listener]:
        return self._listeners

    def is_missing(self, path: str) -> bool:
        return path in self._missing


def _load(file: Path | None) -> _Saved:
    if file is None or not file.exists():
        return _Saved()
    return msgspec.json.decode(file.read_bytes(), type=_Saved)


def _matches(patterns: Collection[str], *names: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)
