"""What must hold before anything of a deployment is changed (AGT-1); all that does not hold is said at once."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agent.clock import Clock
from agent.reconcile import labels
from agent.reconcile.memory import Memory, Pull
from agent.reconcile.wanted import Wanted, WantedContainer
from agent.registries import ImageSupply
from agent.runtime.base import Container, Host, ImageUnavailable, Listener, State
from agent.wire.ports import PortMapping
from agent.wording import utc

FIRST_RETRY_SECONDS = 10.0
LONGEST_RETRY_SECONDS = 600.0
_HOLDS_PORTS = frozenset({State.RUNNING, State.PAUSED, State.STOPPING, State.LOST})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that is on the host at one moment: the deployment's own containers, those of others, held ports, and the
    lowest port that Podman may publish.
    """

    own: Collection[Container]
    others: Collection[Container]
    listeners: Collection[Listener]
    lowest_port: int = 1


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the change may begin: no ``problems``, and nothing that it waits for."""

    problems: tuple[str, ...]
    memory: Memory
    waits: str = ""
    again_in: float | None = None

    @property
    def may_begin(self) -> bool:
        return not self.problems and not self.waits


def local_problems(wanted: Wanted, coming: Collection[WantedContainer], around: Surroundings, host: Host) -> list[str]:
    """What this host itself has against the containers that are to come; asks no registry."""
    own_ports = [port for c in around.own if c.state in _HOLDS_PORTS for port in c.ports]
    problems = list(wanted.secret_problems)
    for container in coming:
        problems += _name(container, around.others)
        problems += _low_ports(container, around.lowest_port)
        problems += _ports(container, around.others, own_ports, around.listeners)
        problems += _paths(container, host)
    return problems


def _name(container: WantedContainer, others: Collection[Container]) -> Iterator[str]:
    for other in others:
        if other.name == container.name:
            yield f"name {container.name!r} is held by {_whose(other)}"


def _whose(container: Container) -> str:
    if container.state is State.GHOST:
        return (
            f"storage entry {container.id[:12]} which Fleet did not create (podman rm {container.id[:12]} removes it)"
        )
    deployment = container.labels.get(labels.DEPLOYMENT)
    uid = container.labels.get(labels.UID)
    whose = f"of deployment {deployment} (uid {uid})" if deployment else "which Fleet did not create"
    return f"container {container.id[:12]} {whose}"


def _low_ports(container: WantedContainer, lowest: int) -> Iterator[str]:
    """The lowest says it for all: a range may have hundreds."""
    low = min(container.spec.ports, key=lambda port: port.host, default=None)
    if low is not None and low.host < lowest:
        yield (
            f"port {_text(low)} of {container.name} is below {lowest}, which Podman may not publish without root "
            f"(sysctl net.ipv4.ip_unprivileged_port_start={low.host} allows it)"
        )


def _ports(
    container: WantedContainer,
    others: Collection[Container],
    own_ports: Collection[PortMapping],
    listeners: Collection[Listener],
) -> Iterator[str]:
    """Containers are named; a listener that belongs to a published port is that container's, not another process."""
    active = [other for other in others if other.state in _HOLDS_PORTS]
    published = [port for other in active for port in other.ports]
    for wanted in container.spec.ports:
        holders = [other.name for other in active if any(port.clashes(wanted) for port in other.ports)]
        if holders:
            yield f"port {_text(wanted)} is held by container {holders[0]!r}"
        elif not any(port.clashes(wanted) for port in [*published, *own_ports]) and _is_held(wanted, listeners):
            yield f"port {_text(wanted)} is held by another process of this host"


def _is_held(wanted: PortMapping, listeners: Collection[Listener]) -> bool:
    return any(wanted.clashes(PortMapping(held.host_ip, held.port, 0, held.protocol)) for held in listeners)


def _text(port: PortMapping) -> str:
    address = f"{port.host_ip}:" if port.host_ip else ""
    return f"{address}{port.host}/{port.protocol}"


def _paths(container: WantedContainer, host: Host) -> Iterator[str]:
    for mount in container.spec.mounts:
        if host.is_missing(mount.host_path):
            yield f"host path {mount.host_path} of {container.name} does not exist"


class ImageFetcher:
    """Has the images that are to come; pulls are jittered, and repeated with growing pauses (R8)."""

    def __init__(self, supply: ImageSupply, clock: Clock, *, jitter_seconds: float, dice: random.Random) -> None:
        self._supply = supply
        self._clock = clock
        self._jitter_seconds = jitter_seconds
        self._dice = dice

    def ready(self, coming: Collection[WantedContainer], memory: Memory, problems: list[str]) -> Readiness:
        """Pull what is missing. With problems already, only ask the registry: no download that leads nowhere (P4)."""
        waits: list[Pull] = []
        images = dict.fromkeys(container.spec.image for container in coming)
        digests = {container.spec.image: container.digest for container in coming}
        found = list(problems)
        for image in images:
            if self._is_here(image, digests[image]):
                memory = memory.without_pull(image)
                continue
            pull, memory = self._attempt(image, digests[image], memory, only_ask=bool(problems))
            if pull and pull.error:
                found.append(pull.error)
            elif pull:
                waits.append(pull)
        return self._readiness(found, memory, waits)

    def _is_here(self, image: str, digest: str) -> bool:
        local = self._supply.image(image)
        return local is not None and (not digest or digest in local.digests)

    def _attempt(self, image: str, digest: str, memory: Memory, *, only_ask: bool) -> tuple[Pull | None, Memory]:
        """The pull that is still to come or that failed; ``None`` when the image is here (or could be had)."""
        now = self._clock.monotonic()
        pull = memory.pulls.get(image) or Pull(now + self._dice.uniform(0, self._jitter_seconds))
        memory = memory.with_pull(image, pull)
        if now < pull.not_before:
            return pull, memory
        try:
            self._fetch(image, digest, only_ask=only_ask)
        except ImageUnavailable as error:
            pull = self._later(pull, str(error))
            return pull, memory.with_pull(image, pull)
        return None, memory.without_pull(image)

    def _fetch(self, image: str, digest: str, *, only_ask: bool) -> None:
        if only_ask:
            self._supply.probe(image)
            return
        pulled = self._supply.pull(image)
        if digest and digest not in pulled.digests:
            found = ", ".join(pulled.digests) or "none"
            raise ImageUnavailable(f"image {image}: the registry gave digest {found}; wanted {digest}")

    def _later(self, pull: Pull, error: str) -> Pull:
        pause = min(FIRST_RETRY_SECONDS * 2.0**pull.attempts, LONGEST_RETRY_SECONDS)
        not_before = self._clock.monotonic() + pause * self._dice.uniform(0.5, 1.0)
        return Pull(not_before, pull.attempts + 1, error)

    def _readiness(self, problems: list[str], memory: Memory, waits: list[Pull]) -> Readiness:
        pauses = [pull.not_before - self._clock.monotonic() for pull in memory.pulls.values()]
        again_in = max(0.0, min(pauses)) if pauses else None
        text = ""
        if waits:
            text = f"images are fetched from {utc(self._clock.now() + (again_in or 0.0))} on"
        return Readiness(tuple(problems), memory, text, again_in)
