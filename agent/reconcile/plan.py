"""What to do about one deployment, and what may be said about it. Pure: no I/O, no clock of its own.

:func:`plan` compares what shall run with what was seen and returns the steps that are due now and the verdict that
holds if nothing else happens. It is called again after every change, so no step depends on an earlier one's result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from agent.reconcile import labels
from agent.reconcile.memory import Failure, Memory
from agent.reconcile.wanted import Wanted, WantedContainer
from agent.runtime.base import Container, State
from agent.wire.messages import DeploymentState
from agent.wording import utc

STOP_SECONDS = 30
#: How long a state that should pass by itself may last before the container is replaced by force (P6).
STUCK_SECONDS = STOP_SECONDS + 15.0
#: A process that is gone may have ended a moment ago, before Podman noticed: look twice before calling it lost.
LOST_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.25
#: Podman notes the start after the process began and takes the end from a file's coarse time: a run of a millisecond
#: seems to end before it started.
CLOCK_GRAIN_SECONDS = 1.0
#: Podman restarts a service that crashed by itself; only after this long the agent does.
RESTART_SECONDS = 5.0
_PASSES_WITHIN = {State.LOST: LOST_SECONDS, State.STOPPED: RESTART_SECONDS}
#: Exit codes that a stop leaves (asked, SIGKILL, SIGTERM), as opposed to a crash.
_STOPPED_BY_HAND = (0, 137, 143)


@dataclass(frozen=True, slots=True)
class Settings:
    """``init_timeout_seconds`` 0 means no limit (AGT-2); ``settle_seconds`` is AGT-6's."""

    settle_seconds: float = 10.0
    init_timeout_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Remove:
    """Stop with 30 s, then remove by force (AGT-5)."""

    container_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Create:
    """Create and start."""

    wanted: WantedContainer

    @property
    def name(self) -> str:
        return self.wanted.name


@dataclass(frozen=True, slots=True)
class Start:
    container_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Unpause:
    container_id: str
    name: str


Step = Remove | Create | Start | Unpause


@dataclass(frozen=True, slots=True)
class Seen:
    """This deployment's own containers, the digests of their images by image id, and the ids of those that somebody
    else made in their place.
    """

    containers: tuple[Container, ...] = ()
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remade: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is reported; ``again_in`` is when looking again is worthwhile, in seconds (``None``: at the next pass)."""

    state: DeploymentState
    message: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    again_in: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """``steps`` now; ``coming`` are all containers that will be created or started before this revision runs."""

    steps: tuple[Step, ...]
    coming: tuple[WantedContainer, ...]
    verdict: Verdict
    memory: Memory


@dataclass(frozen=True, slots=True)
class _Finding:
    """One container: fine when it has neither a step, nor something it waits for, nor a failure."""

    wanted: WantedContainer
    steps: tuple[Step, ...] = ()
    waits: str = ""
    failure: Failure | None = None
    again_in: float | None = None

    @property
    def is_fine(self) -> bool:
        return not (self.steps or self.waits or self.failure)

    @property
    def replaces(self) -> bool:
        """Whether a container goes or comes, instead of going on."""
        return any(isinstance(step, Create | Remove) for step in self.steps)


@dataclass(frozen=True, slots=True)
class _Look:
    """What every rule needs."""

    seen: Seen
    memory: Memory
    settings: Settings
    now: float
    retry: bool

    def find(self, wanted: WantedContainer) -> Container | None:
        return next((c for c in self.seen.containers if c.name == wanted.name), None)

    def since_restart(self, current: Container) -> float:
        """Seconds since the agent learned that the runtime had restarted it: perhaps long after it happened."""
        known = self.memory.restarts.get(current.id)
        return math.inf if known is None else abs(self.now - known.noticed_at)

    def may_retry(self, wanted: WantedContainer, container_id: str) -> bool:
        """A failure is said first and tried again at the next pass (AGT-2)."""
        said = self.memory.failures.get(wanted.name)
        return self.retry and said is not None and said.container_id == container_id


def plan(wanted: Wanted, seen: Seen, memory: Memory, settings: Settings, *, now: float, retry: bool = False) -> Plan:
    """The steps that are due and the verdict (AGT-2 to AGT-7).

    ``retry`` is set on a regular pass: what failed may be tried again. ``now`` is Unix seconds.
    """
    memory = memory.about(wanted, seen.containers, now)
    look = _Look(seen, memory, settings, now, retry)
    init = _init(wanted.init, look) if wanted.init else None
    services = [_service(service, look) for service in wanted.services]
    waits_for_init = init is not None and not init.is_fine
    steps = init.steps if init and waits_for_init else (*_extras(wanted, seen), *_ordered(services, seen))
    judged = [init] if init and waits_for_init else services
    memory = memory.noting(
        {f.wanted.name: f.failure for f in judged if f.failure}, fine=[f.wanted.name for f in judged if f.is_fine]
    )
    findings = [init, *services] if init else services
    coming = tuple(f.wanted for f in findings if any(isinstance(step, Create | Start) for step in f.steps))
    return Plan(steps, coming, _verdict(judged, memory, steps, _images(wanted, seen)), memory)


def plan_upkeep(wanted: Wanted, seen: Seen, memory: Memory, settings: Settings, *, now: float) -> tuple[Step, ...]:
    """Starts of services as they are, while what they shall become is not known or not to be had (AGT-10).

    Nothing is replaced, created or removed. Nothing is started either before the init container has completed.
    """
    look = _Look(seen, memory, settings, now, retry=False)
    marker = look.find(wanted.init) if wanted.init else None
    if wanted.init and (marker is None or not is_completed(marker)):
        return ()
    findings = [_service(service, look) for service in _as_they_are(wanted, look)]
    return tuple(step for finding in findings for step in finding.steps if not finding.replaces)


def _as_they_are(wanted: Wanted, look: _Look) -> Iterator[WantedContainer]:
    for service in wanted.services:
        current = look.find(service)
        if current and current.labels.get(labels.ROLE) == service.role:
            yield replace(service, hash=current.labels.get(service.hash_label, ""), digest="")


def plan_removal(seen: Seen) -> tuple[Step, ...]:
    """Everything of a deployment goes, init and services (DEP-14)."""
    return tuple(Remove(c.id, c.name) for c in seen.containers)


# The init container (AGT-2, AGT-3) -----------------------------------------------------------------------------------


def is_completed(container: Container) -> bool:
    """Whether a run really came to its good end: after a power loss ``created, exit 0`` only looks like it."""
    return (
        container.state is State.EXITED
        and container.exit_code == 0
        and 0 < container.started_at <= container.finished_at + CLOCK_GRAIN_SECONDS
    )


def _init(wanted: WantedContainer, look: _Look) -> _Finding:
    current = look.find(wanted)
    if current is None or _differs(wanted, current, look.seen):
        said = look.memory.failures.get(wanted.name)
        if current is None and said and not look.retry:
            return _Finding(wanted, failure=said)
        return _replace(wanted, current, f"init container {wanted.name} is started")
    if current.state is State.RUNNING:
        return _running_init(wanted, current, look)
    if current.state in (State.CREATED, State.EXITED):
        return _ended_init(wanted, current, look)
    return _passing(wanted, current, look)


def _running_init(wanted: WantedContainer, current: Container, look: _Look) -> _Finding:
    limit = look.settings.init_timeout_seconds
    if limit and look.now - current.started_at > limit:
        message = f"init container {wanted.name} did not end within {limit:g} s"
        failure = Failure(current.id, wanted.hash, message)
        return _Finding(wanted, (Remove(current.id, current.name),), failure=failure)
    waits = f"init container {wanted.name} runs since {utc(current.started_at)}"
    return _Finding(wanted, waits=waits, again_in=LOOK_AGAIN_SECONDS)


def _ended_init(wanted: WantedContainer, current: Container, look: _Look) -> _Finding:
    if is_completed(current):
        return _Finding(wanted)
    if current.state is State.CREATED or current.exit_code == 0:
        return _replace(wanted, current, f"init container {wanted.name} is started again, it was interrupted")
    if look.may_retry(wanted, current.id):
        return _replace(wanted, current, f"init container {wanted.name} is tried again")
    message = f"init container {wanted.name} failed with exit code {current.exit_code}{_log(current)}"
    return _Finding(wanted, failure=Failure(current.id, wanted.hash, message))


# Services (AGT-4, AGT-6, AGT-7) --------------------------------------------------------------------------------------


def _service(wanted: WantedContainer, look: _Look) -> _Finding:
    current = look.find(wanted)
    if current is None or _differs(wanted, current, look.seen):
        return _replace(wanted, current, f"service {wanted.name} is started")
    if current.state is State.RUNNING:
        return _running_service(wanted, current, look)
    if current.state is State.CREATED and current.id in look.memory.unstartable:
        return _replace(wanted, current, f"service {wanted.name} is replaced, it could not be started")
    if current.state is State.CREATED:
        return _start(wanted, current, f"service {wanted.name} is started")
    if current.state is State.EXITED:
        return _ended_service(wanted, current, look)
    return _passing(wanted, current, look)


def _running_service(wanted: WantedContainer, current: Container, look: _Look) -> _Finding:
    # A start in the future by more than the settle time means that the clock was set back: it runs for long.
    settle = look.settings.settle_seconds
    up = min(abs(look.now - current.started_at), look.since_restart(current))
    if up < settle and current.restarts:
        times = "once" if current.restarts == 1 else f"{current.restarts} times"
        message = f"service {wanted.name} restarted {times}, last exit code {current.exit_code}{_log(current)}"
        return _Finding(wanted, failure=Failure(current.id, wanted.hash, message), again_in=settle - up)
    if up < settle:
        waits = f"service {wanted.name} must stay up for {settle:g} s, started {utc(current.started_at)}"
        return _Finding(wanted, waits=waits, again_in=settle - up)
    if current.health == "unhealthy":
        return _Finding(wanted, failure=Failure(current.id, wanted.hash, f"service {wanted.name} is unhealthy"))
    if current.health not in ("", "healthy"):
        return _Finding(wanted, waits=f"the health check of service {wanted.name} has not passed yet", again_in=1.0)
    return _Finding(wanted)


def _ended_service(wanted: WantedContainer, current: Container, look: _Look) -> _Finding:
    ends_by_itself = wanted.spec.restart_policy.partition(":")[0] in ("no", "on-failure")
    if ends_by_itself and is_completed(current):
        return _Finding(wanted)
    if ends_by_itself and current.exit_code and not look.may_retry(wanted, current.id):
        return _Finding(wanted, failure=_exit(wanted, current))
    ran_briefly = abs(current.finished_at - current.started_at) < look.settings.settle_seconds
    crashed = not ends_by_itself and (ran_briefly or current.exit_code not in _STOPPED_BY_HAND)
    if crashed and abs(look.now - current.finished_at) < RESTART_SECONDS:  # a clock may have been set back since
        return _Finding(wanted, failure=_exit(wanted, current), again_in=LOST_SECONDS)
    return _start(wanted, current, f"service {wanted.name} is started again, it had stopped")


# Common to both ------------------------------------------------------------------------------------------------------


def _differs(wanted: WantedContainer, current: Container, seen: Seen) -> bool:
    """Whether it is not what is wanted: another role, another definition, not the pinned image (DEP-18), not ours."""
    if current.id in seen.remade:
        return True
    if not wanted.hash or current.labels.get(wanted.hash_label) != wanted.hash:
        return True
    if current.labels.get(labels.ROLE) != wanted.role:
        return True
    return bool(wanted.digest) and wanted.digest not in seen.digests.get(current.image_id, ())


def _replace(wanted: WantedContainer, current: Container | None, waits: str) -> _Finding:
    removal = (Remove(current.id, current.name),) if current else ()
    return _Finding(wanted, (*removal, Create(wanted)), waits)


def _start(wanted: WantedContainer, current: Container, waits: str) -> _Finding:
    return _Finding(wanted, (Start(current.id, current.name),), waits)


def _exit(wanted: WantedContainer, current: Container) -> Failure:
    message = f"service {wanted.name} exited with code {current.exit_code}{_log(current)}"
    return Failure(current.id, wanted.hash, message)


def _passing(wanted: WantedContainer, current: Container, look: _Look) -> _Finding:
    """Paused by hand goes on; stopping, stopped but not cleaned up or lost passes, or is replaced by force (P6)."""
    if current.state is State.PAUSED:
        return _Finding(wanted, (Unpause(current.id, current.name),), f"container {wanted.name} was paused")
    limit = _PASSES_WITHIN.get(current.state, STUCK_SECONDS)
    since = look.memory.unsteady.get(current.id, look.now)
    if abs(look.now - since) >= limit:
        return _replace(wanted, current, f"container {wanted.name} is replaced, it was {current.state}")
    what = "has just ended" if current.state in (State.LOST, State.STOPPED) else f"is {current.state}"
    return _Finding(wanted, waits=f"container {wanted.name} {what}", again_in=LOOK_AGAIN_SECONDS)


def _log(container: Container) -> str:
    return f": {container.log}" if container.log else ""


def _extras(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    """Containers that left the score."""
    names = {container.name for container in wanted.containers}
    return (Remove(c.id, c.name) for c in seen.containers if c.name not in names)


def _ordered(services: list[_Finding], seen: Seen) -> Iterator[Step]:
    """One service after the other, so that each is down for its own change only; unless ports move between them."""
    steps = [step for finding in services for step in finding.steps]
    if _ports_move(steps, seen):
        steps.sort(key=lambda step: not isinstance(step, Remove))
    return iter(steps)


def _ports_move(steps: list[Step], seen: Seen) -> bool:
    going = {step.container_id for step in steps if isinstance(step, Remove)}
    held = [(c.name, port) for c in seen.containers if c.id in going for port in c.ports]
    coming = [(s.wanted.name, port) for s in steps if isinstance(s, Create) for port in s.wanted.spec.ports]
    return any(a != b and p.clashes(q) for a, p in held for b, q in coming)


def _images(wanted: Wanted, seen: Seen) -> dict[str, str]:
    by_name = {c.name: c for c in seen.containers}
    found = {}
    for container in wanted.containers:
        current = by_name.get(container.name)
        digests = seen.digests.get(current.image_id, ()) if current else ()
        if digests:
            found[container.name] = container.digest if container.digest in digests else digests[0]
    return found


def _verdict(judged: list[_Finding], memory: Memory, steps: tuple[Step, ...], images: dict[str, str]) -> Verdict:
    """A failure stays said while it is tried again: only a container that is fine takes it back."""
    failed = [memory.failures[f.wanted.name].message for f in judged if f.wanted.name in memory.failures]
    waits = [f.waits for f in judged if f.waits]
    again_in = min((f.again_in for f in judged if f.again_in is not None), default=None)
    if failed:
        return Verdict(DeploymentState.FAILED, "; ".join(failed), images, again_in)
    if waits or steps:
        message = "; ".join(waits) or "containers that left the score are removed"
        return Verdict(DeploymentState.PROGRESSING, message, images, again_in)
    return Verdict(DeploymentState.CONVERGED, "", images)


def with_failure(verdict: Verdict, message: str) -> Verdict:
    """The same observation, failed for a reason that lies outside of the containers."""
    return replace(verdict, state=DeploymentState.FAILED, message=message, again_in=None)
