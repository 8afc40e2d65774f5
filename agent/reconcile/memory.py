"""What the agent remembers of a deployment between two looks; losing it (a restart) costs time only. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from agent.reconcile.wanted import Wanted
from agent.runtime.base import Container, State

_STEADY = frozenset({State.CREATED, State.RUNNING, State.PAUSED, State.EXITED})


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong with a container of the definition ``hash``."""

    container_id: str
    hash: str
    message: str


@dataclass(frozen=True, slots=True)
class Pull:
    """When an image may be fetched (again): the first time jittered, after each error later (R8)."""

    not_before: float
    attempts: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often the runtime has restarted a container by itself, and when the agent learned of the last time."""

    count: int
    noticed_at: float


@dataclass(frozen=True, slots=True)
class Memory:
    """``failures`` by container name; ``unsteady`` is when a container was first seen in a passing state, by id;
    ``unstartable`` are ids that Podman refused to start; ``restarts`` by id; ``pulls`` by image reference.
    """

    failures: Mapping[str, Failure] = field(default_factory=dict)
    unsteady: Mapping[str, float] = field(default_factory=dict)
    unstartable: frozenset[str] = frozenset()
    restarts: Mapping[str, Restarts] = field(default_factory=dict)
    pulls: Mapping[str, Pull] = field(default_factory=dict)

    def about(self, wanted: Wanted, containers: Collection[Container], now: float) -> Memory:
        """Without what concerns other definitions, images or containers that are gone."""
        hashes = {container.name: container.hash for container in wanted.containers}
        images = {container.spec.image for container in wanted.containers}
        here = {container.id for container in containers}
        unsteady = {c.id: self.unsteady.get(c.id, now) for c in containers if c.state not in _STEADY}
        return Memory(
            failures={name: f for name, f in self.failures.items() if hashes.get(name) == f.hash},
            unsteady=unsteady,
            unstartable=self.unstartable & here,
            restarts={c.id: self._restarts_of(c, now) for c in containers},
            pulls={image: pull for image, pull in self.pulls.items() if image in images},
        )

    def _restarts_of(self, container: Container, now: float) -> Restarts:
        """Those of before the agent began to look are no news."""
        known = self.restarts.get(container.id)
        if known is None:
            return Restarts(container.restarts, -math.inf)
        return Restarts(container.restarts, now) if container.restarts > known.count else known

    def noting(self, failures: Mapping[str, Failure], fine: Iterable[str]) -> Memory:
        """With new failures, and without those of containers that are fine now."""
        kept = {name: failure for name, failure in self.failures.items() if name not in set(fine)}
        return replace(self, failures={**kept, **failures})

    def with_pull(self, image: str, pull: Pull) -> Memory:
        return replace(self, pulls={**self.pulls, image: pull})

    def without_pull(self, image: str) -> Memory:
        return replace(self, pulls={name: pull for name, pull in self.pulls.items() if name != image})
