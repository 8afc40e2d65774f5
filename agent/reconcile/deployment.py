"""One deployment on this device: look, plan, preflight, apply, look again, until nothing is due."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.clock import Clock
from agent.images import ImageStock
from agent.reconcile.apply import StepFailure, apply
from agent.reconcile.claims import Claims, deployment_of
from agent.reconcile.labels import Owner
from agent.reconcile.memory import Failure, Memory
from agent.reconcile.plan import (
    Create,
    Plan,
    Seen,
    Settings,
    Step,
    Verdict,
    is_completed,
    plan,
    plan_removal,
    plan_upkeep,
    with_failure,
)
from agent.reconcile.preflight import ImageFetcher, Readiness, Surroundings, local_problems
from agent.reconcile.wanted import Wanted, resolve
from agent.registries import ImageSupply, Logins, LoginSource
from agent.runtime.base import Container, Host, Runtime, RuntimeFailure, RuntimeUnreachable, State
from agent.secrets.keeper import SecretKeeper
from agent.secrets.resolution import Resolution
from agent.wire.messages import DeploymentDocument, DeploymentState

#: Looks in one go: create the init, its end, the services, the verdict. What then still wants a step waits for the next
#: pass: the runtime does not do what it says, and asking faster would only burn the device.
MAX_LOOKS = 4
#: Times in the list of containers are cut to whole seconds: up to this much too early.
LIST_GRAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Tools:
    """What every deployment is worked on with."""

    runtime: Runtime
    host: Host
    owner: Owner
    clock: Clock
    settings: Settings
    secrets: SecretKeeper
    stock: ImageStock
    logins: LoginSource
    claims: Claims
    pull_jitter_seconds: float
    dice: random.Random


class DeploymentWork:
    """What is remembered of one deployment, and the work on it; called by one thread at a time."""

    def __init__(self, uid: str, tools: Tools) -> None:
        self._uid = uid
        self._tools = tools
        self._memory = Memory()
        self._digests: dict[str, tuple[str, ...]] = {}
        self._proven: set[tuple[str, int, int]] = set()
        self._fetcher = ImageFetcher(
            ImageSupply(tools.runtime, tools.stock, Logins(uid, tools.logins)),
            tools.clock,
            jitter_seconds=tools.pull_jitter_seconds,
            dice=tools.dice,
        )

    def reconcile(
        self,
        document: DeploymentDocument,
        containers: Sequence[Container],
        *,
        retry: bool,
        announce: Callable[[str], None],
    ) -> Verdict:
        """Bring it about as far as is possible now; ``containers`` are all on the host, as just listed."""
        secrets = self._tools.secrets.known(document)
        try:
            for _ in range(MAX_LOOKS):
                wanted, due = self._decide(document, secrets, containers, retry=retry)
                secrets = wanted.secrets
                if not due.steps and not wanted.secret_problems:
                    self._tools.claims.release(self._uid, keep={container.name for container in wanted.containers})
                    return due.verdict
                readiness = self._preflight(wanted, due, containers, announce)
                if not readiness.may_begin:
                    trouble = self._keep_up(wanted, containers, announce)
                    return _held_back(due.verdict, readiness, trouble)
                if failures := self._carry_out(due.steps, announce):
                    return self._failed(wanted, failures)
                containers, retry = self._tools.runtime.containers(), False
        except RuntimeFailure as error:
            return unseen(error)
        return replace(due.verdict, again_in=None)

    def remove(self, containers: Sequence[Container], *, announce: Callable[[str], None]) -> Verdict:
        """Take everything of it away (DEP-14); ``removed`` only when a look shows that nothing is left."""
        try:
            for _ in range(2):
                steps = plan_removal(Seen(self._own(containers)))
                if not steps:
                    self._tools.claims.release(self._uid)
                    return Verdict(DeploymentState.REMOVED)
                for step in steps:
                    apply(step, self._tools.runtime, announce)
                containers = self._tools.runtime.containers()
        except StepFailure as failure:
            return Verdict(DeploymentState.FAILED, str(failure))
        except RuntimeFailure as error:
            return unseen(error)
        return Verdict(DeploymentState.PROGRESSING, "containers are still there after their removal", again_in=1.0)

    # Inside --------------------------------------------------------------------------------------------------------

    def _decide(
        self, document: DeploymentDocument, secrets: Resolution, containers: Sequence[Container], *, retry: bool
    ) -> tuple[Wanted, Plan]:
        """The plan; one that creates a container is made again with the values that secrets have now (AGT-10)."""
        wanted = resolve(document, self._tools.owner, secrets)
        due = self._plan(wanted, containers, retry=retry)
        if secrets.is_fresh or not any(isinstance(step, Create) for step in due.steps):
            return wanted, due
        wanted = resolve(document, self._tools.owner, self._tools.secrets.anew(document))
        return wanted, self._plan(wanted, containers, retry=retry)

    def _plan(self, wanted: Wanted, containers: Sequence[Container], *, retry: bool) -> Plan:
        seen = self._look(wanted, containers)
        now = self._tools.clock.now()
        due = plan(wanted, seen, self._memory, self._tools.settings, now=now, retry=retry)
        self._memory = due.memory
        return due

    def _preflight(
        self, wanted: Wanted, due: Plan, containers: Sequence[Container], announce: Callable[[str], None]
    ) -> Readiness:
        if not due.coming and not wanted.secret_problems:
            return Readiness((), self._memory)
        own = self._own(containers)
        others = [container for container in containers if container not in own]
        around = Surroundings(own, others, self._tools.host.listeners(), self._tools.runtime.lowest_port())
        problems = local_problems(wanted, due.coming, around, self._tools.host)
        announce("images are checked and fetched")
        readiness = self._fetcher.ready(due.coming, self._memory, problems)
        self._memory = readiness.memory
        return readiness

    def _keep_up(self, wanted: Wanted, containers: Sequence[Container], announce: Callable[[str], None]) -> list[str]:
        """A secret that is not to be had is no reason to leave a service down that has its values already.

        What went wrong with that.
        """
        if not wanted.secret_problems:
            return []
        seen, now = self._look(wanted, containers), self._tools.clock.now()
        steps = plan_upkeep(wanted, seen, self._memory, self._tools.settings, now=now)
        return [wanted.secrets.hidden_in(str(failure)) for failure in self._carry_out(steps, announce)]

    def _carry_out(self, steps: Sequence[Step], announce: Callable[[str], None]) -> list[StepFailure]:
        """What went wrong. A service that can't be made does not keep the others down, unless Podman itself is away."""
        self._digests.clear()
        failures: list[StepFailure] = []
        for step in steps:
            if step.name in {failure.name for failure in failures}:
                continue
            if isinstance(step, Create):
                self._tools.claims.take(step.name, self._uid, self._tools.clock.now())
            try:
                apply(step, self._tools.runtime, announce)
            except StepFailure as failure:
                failures.append(failure)
                if isinstance(failure.__cause__, RuntimeUnreachable):
                    break
        return failures

    def _failed(self, wanted: Wanted, failures: Sequence[StepFailure]) -> Verdict:
        """Remembered like failures of the containers themselves, so that they stay said until they are fine."""
        hashes = {container.name: container.hash for container in wanted.containers}
        noted = {
            failure.name: Failure(
                failure.container_id, hashes.get(failure.name, ""), wanted.secrets.hidden_in(str(failure))
            )
            for failure in failures
        }
        unstartable = {failure.container_id for failure in failures if failure.unstartable}
        memory = self._memory.noting(noted, fine=())
        self._memory = replace(memory, unstartable=memory.unstartable | unstartable)
        return Verdict(DeploymentState.FAILED, "; ".join(failure.message for failure in noted.values()))

    def _own(self, containers: Sequence[Container]) -> tuple[Container, ...]:
        owner, claims = self._tools.owner, self._tools.claims
        return tuple(c for c in containers if deployment_of(c, owner, claims) == self._uid)

    def _look(self, wanted: Wanted, containers: Sequence[Container]) -> Seen:
        """Own containers, with a closer look at those that are not at rest; their logs without secret values."""
        claims, listed = self._tools.claims, self._own(containers)
        claims.notice(self._uid, (c for c in listed if c.state is not State.GHOST))
        self._proven &= {_run_of(container) for container in listed}
        own = [self._closer(container) for container in listed]
        found = tuple(replace(c, log=wanted.secrets.hidden_in(c.log)) for c in own if c is not None)
        references = {container.name: container.spec.image for container in wanted.containers}
        digests = {c.image_id: self._image_digests(c.image_id, references.get(c.name, "")) for c in found}
        return Seen(found, digests, frozenset(c.id for c in found if claims.is_remade(c)))

    def _closer(self, container: Container) -> Container | None:
        """The list has whole seconds and no restarts: enough for what is at rest and was looked at before."""
        look = _run_of(container)
        if container.state is State.GHOST or (look in self._proven and self._is_at_rest(container)):
            return container
        closer = self._tools.runtime.inspect(container.id)
        if closer is not None:
            self._proven.add(look)
        return closer

    def _is_at_rest(self, container: Container) -> bool:
        """Whether nothing about it is waited for: it has completed, or runs for long, also since a noticed restart."""
        known = self._memory.restarts.get(container.id)
        since = container.started_at if known is None else max(container.started_at, known.noticed_at)
        up = self._tools.clock.now() - since
        runs = container.state is State.RUNNING and up >= self._tools.settings.settle_seconds + LIST_GRAIN_SECONDS
        return runs or is_completed(container)

    def _image_digests(self, image_id: str, reference: str) -> tuple[str, ...]:
        """Asked for once per image, until something is changed; those of the reference's own registry come first."""
        if image_id not in self._digests:
            image = self._tools.runtime.image(reference) if reference else None
            if image is None or image.id != image_id:
                image = self._tools.runtime.image(image_id)
            self._digests[image_id] = image.digests if image else ()
        return self._digests[image_id]


def _run_of(container: Container) -> tuple[str, int, int]:
    """What the list says of a container's last run; changes with each, whoever started it."""
    return container.id, int(container.started_at), int(container.finished_at)


def unseen(error: RuntimeFailure) -> Verdict:
    """Nothing can be claimed about containers that cannot be seen (AGT-6)."""
    return Verdict(DeploymentState.PROGRESSING, f"the containers cannot be seen: {error}", again_in=None)


def _held_back(verdict: Verdict, readiness: Readiness, trouble: Sequence[str]) -> Verdict:
    if readiness.problems:
        message = f"preflight failed: {'; '.join([*readiness.problems, *trouble])}"
        return replace(with_failure(verdict, message), again_in=readiness.again_in)
    return replace(verdict, message=readiness.waits, again_in=readiness.again_in)
