"""The agent put together: four steps (poll, pass, report, answer) that may be called in any order, and often.

:func:`build` is the in-process constructor for the command, for simulations and for tests, which give it their own
clock, runtime and workers and then call the steps by themselves.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent import facts
from agent.clock import Clock, SystemClock
from agent.config import Config
from agent.control import ControlError, ControlPlane, Unauthorised
from agent.desired import Assignment, Desired
from agent.images import ImageStock
from agent.ledger import Ledger
from agent.logs import LogDesk, LogReader
from agent.outbox import Outbox
from agent.reconcile.claims import Claims
from agent.reconcile.deployment import Tools
from agent.reconcile.labels import Owner
from agent.reconcile.plan import Settings
from agent.reconcile.reconciler import Reconciler, ThreadWorkers, Workers
from agent.reconcile.wanted import image_references
from agent.registries import LoginSource
from agent.runtime.base import Host, Runtime, RuntimeFailure
from agent.secrets.cache import SecretCache
from agent.secrets.keeper import SecretKeeper
from agent.secrets.sources import Sources
from agent.status import DeploymentLine, Status, UpgradeLine
from agent.store import STATE_NOT_SAVED, Identity, Store
from agent.upgrades.client import SocketUpdater, Updater
from agent.upgrades.desk import UpgradeDesk
from agent.upgrades.patience import PatientOffers
from agent.version import VERSION
from agent.wire.messages import AttemptOffer, DeploymentReport, DeploymentState, EnrolRequest, Facts, Problem
from agent.wire.updater import AGENT_UPGRADE_V1, Standing

SIMULATED = "simulated"


class NotEnrolled(Exception):
    """This device has no identity yet, or another one than its configuration says."""


class Agent:
    """One device. Every step is idempotent; none of them starts a thread (the workers may).

    ``version``: its own, which simulated devices choose.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        identity: Identity,
        *,
        tools: Tools,
        control: ControlPlane,
        workers: Workers,
        updater: Updater,
        version: str = VERSION,
    ) -> None:
        self.config = config
        self.store = store
        self.identity = identity
        self.version = version
        self.control = control
        self.clock = tools.clock
        self.ledger = Ledger(tools.clock, store.reports().deployments)
        store.complain, store.solved = self._complain, self.ledger.solved
        for problem in store.early:
            self._complain(problem)
        self.desired = Desired(store, self.ledger, identity)
        self.reconciler = Reconciler(tools, self.ledger, workers)
        self.upgrades = UpgradeDesk(updater, store, self.ledger, self._lacks, version)
        self._offers = PatientOffers(self._offer, tools.clock, tools.dice)
        self.outbox = Outbox(store, self.ledger, tools.clock, self.facts, self.upgrades)
        self.logs = LogDesk(LogReader(tools.runtime, tools.owner, self._without_secrets), workers)
        self._runtime = tools.runtime
        self._host = tools.host
        self._secrets = tools.secrets
        self._stock = tools.stock
        self._owner = tools.owner
        self._workers = workers
        self._podman_version = ""
        self._last_contact_at = 0.0
        self._status_news: Status | None = None
        self._status_written_at = 0.0

    def poll(self) -> bool:
        """Ask for the desired state; whether something is to be done differently.

        Raises:
            ControlError: when the control plane could not be asked.
        """
        changed = self.desired.poll(self.control)
        self.logs.take(self.desired.log_requests())
        self.upgrades.take(self.desired.attempts())
        self._last_contact_at = self.clock.now()
        return changed

    def wait(self, etag: str) -> bool:
        """Whether something differs from ``etag``, as soon as it does; at the latest after a minute.

        For a thread of its own: it shares no connection with the other steps.

        Raises:
            ControlError: also where the control plane does not serve waiting.
        """
        return self._where_to_wait.wait(etag)

    def reconcile(self, *, retry: bool = True, only: Collection[str] | None = None) -> None:
        """One pass. ``retry``: what failed is tried again; ``only``: these deployments (a second look)."""
        self._ask_version()
        assignments = self.desired.assignments()
        if assignments is not None and only is None:
            self._look_after_secrets(assignments)
        self.reconciler.run(assignments, retry=retry, only=only)
        if assignments is not None and only is None and self._stock.is_due():
            self._prune_images(assignments)

    def report(self) -> None:
        """Send a snapshot, or once more the one that was not acknowledged.

        Raises:
            ControlError: when it was not acknowledged.
        """
        self.outbox.send(self.control, self.desired.state)
        self._last_contact_at = self.clock.now()

    def answer(self) -> None:
        """Send one of the logs that were asked for, if one was read (AGT-16).

        Raises:
            ControlError: when it was not acknowledged.
        """
        self.logs.send(self.control)

    def upgrade(self) -> float:
        """Bring what the updater shall do, and what it did, one step further; seconds until the next.

        For a thread of its own: an updater that is slow holds up nothing else.
        """
        return self.upgrades.work(self._offers)

    def facts(self) -> Facts:
        found = facts.gather(self.config.device.labels, self._podman_version, self._host.boot_id())
        return msgspec.structs.replace(
            found,
            capabilities=[*found.capabilities, *self.upgrades.capabilities()],
            agent_version=self.version,
            updater_version=self.upgrades.version(),
        )

    def write_status(self, error: ControlError | None = None, *, next_attempt_at: float = 0.0) -> None:
        """For ``fleet-agent status``: when something changed, else once per heartbeat, to spare a flash card.

        A full disk must not end the agent.
        """
        status = self.status(error, next_attempt_at=next_attempt_at)
        news = msgspec.structs.replace(status, written_at=0.0, last_contact_at=0.0, next_attempt_at=0.0)
        age = status.written_at - self._status_written_at
        if news == self._status_news and 0 <= age < self.config.agent.heartbeat_seconds:
            return
        with contextlib.suppress(OSError):
            self.store.save_status(status)
            self._status_news, self._status_written_at = news, status.written_at

    def status(self, error: ControlError | None = None, *, next_attempt_at: float = 0.0) -> Status:
        state = self.desired.state
        return Status(
            device=self.identity.device,
            uid=self.identity.uid,
            url=self.config.server.url,
            agent_version=self.version,
            written_at=self.clock.now(),
            podman_version=self._podman_version,
            epoch=state.epoch if state else 0,
            desired_version=state.version if state else 0,
            last_contact_at=self._last_contact_at,
            acknowledged=self.outbox.acknowledged,
            contact_error=str(error) if error else "",
            is_unauthorised=isinstance(error, Unauthorised),
            next_attempt_at=next_attempt_at if error else 0.0,
            notices=self.outbox.notices,
            problems=self.ledger.problems(),
            deployments=[self._line(entry) for entry in self.ledger.deployments()],
            updater_version=self.upgrades.version(),
            capabilities=list(self.upgrades.capabilities()),
            upgrades=[_upgrade_line(standing) for standing in self.upgrades.standings()],
        )

    def _lacks(self) -> str:
        """What this process has not proven yet: until then an upgrade to it is not committed (UPG-4)."""
        if not self.outbox.acknowledged:
            return "the control plane to acknowledge a report"
        if any(problem.reason == STATE_NOT_SAVED for problem in self.ledger.problems()):
            return "its state folder to take what it writes"
        return "" if self._podman_version else "Podman to answer"

    def _without_secrets(self, uid: str, text: str) -> str:
        return self._secrets.kept(uid).hidden_in(text)

    def _complain(self, problem: Problem) -> None:
        """Of the store: every file that was set aside is said, of those that cannot be written the last."""
        self.ledger.complain(problem, key=problem.reason if problem.reason == STATE_NOT_SAVED else problem.message)

    def _line(self, entry: DeploymentReport) -> DeploymentLine:
        title = self.desired.title(entry.uid)
        return DeploymentLine(entry.uid, title, entry.revision, entry.state, entry.since, entry.message)

    @functools.cached_property
    def _where_to_wait(self) -> ControlPlane:
        return self.control.twin(self.config.server.wait_url)

    def _offer(self, attempt: str) -> AttemptOffer:
        return self._own_connection.offer(attempt)

    @functools.cached_property
    def _own_connection(self) -> ControlPlane:
        """Of the thread that upgrades."""
        return self.control.twin()

    def _look_after_secrets(self, assignments: Collection[Assignment]) -> None:
        """Drop those of deployments that are gone; do what ``refresh-secrets`` ordered (AGT-10).

        While containers are being removed, their logs can still be asked for, and values must be known to be hidden.
        """
        gone = {entry.uid for entry in self.ledger.deployments() if entry.state is DeploymentState.REMOVED}
        self._secrets.keep_only({each.uid for each in assignments if not (each.remove and each.uid in gone)})
        if self.store.is_refresh_ordered():
            self._secrets.expire(self.store.refresh_done)

    def _prune_images(self, assignments: Collection[Assignment]) -> None:
        """By a worker. With a definition that is not here it is not known what is still needed: then nothing goes."""
        wanted = [assignment for assignment in assignments if not assignment.remove]
        documents = [assignment.document for assignment in wanted if assignment.document]
        if len(documents) == len(wanted):
            references = {name for document in documents for name in image_references(document, self._owner)}
            self._workers.submit("images", lambda: self._stock.prune(references), lambda: None)

    def _ask_version(self) -> None:
        """Here and not while reporting: a runtime that hangs must not hold up the heartbeat (AGT-12)."""
        if self._podman_version:
            return
        try:
            self._podman_version = self._runtime.version()
            self.outbox.mark()
        except RuntimeFailure:
            return  # the pass says so


def _upgrade_line(standing: Standing) -> UpgradeLine:
    title = f"agent {standing.version}" if standing.executor == AGENT_UPGRADE_V1 else "system"
    return UpgradeLine(standing.attempt, title, standing.state, standing.step, standing.message)


def build(
    config: Config,
    *,
    runtime: Runtime | None = None,
    host: Host | None = None,
    clock: Clock | None = None,
    control: ControlPlane | None = None,
    workers: Workers | None = None,
    updater: Updater | None = None,
    dice: random.Random | None = None,
    version: str = VERSION,
) -> Agent:
    """An agent for an enrolled device.

    Raises:
        NotEnrolled: when the state folder has no identity, or that of another device.
    """
    store = Store(config.state_dir)
    identity = _identity(config, store)
    clock = clock or SystemClock()
    if runtime is None or host is None:
        default_runtime, default_host = _runtime(config, clock)
        runtime, host = runtime or default_runtime, host or default_host
    control = control or _control_plane(config, store.credential)
    dice = dice or random.Random()  # noqa: S311  (spreads load, hides nothing)
    tools = _tools(config, store, identity, control, _Surroundings(runtime, host, clock, dice))
    workers = workers or ThreadWorkers()
    updater = updater or SocketUpdater(Path(config.updater.socket))
    return Agent(
        config, store, identity, tools=tools, control=control, workers=workers, updater=updater, version=version
    )


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What differs between a device and a simulation of one."""

    runtime: Runtime
    host: Host
    clock: Clock
    dice: random.Random


def _tools(config: Config, store: Store, identity: Identity, control: ControlPlane, around: _Surroundings) -> Tools:
    folder = Path(config.secrets.directory)
    return Tools(
        runtime=around.runtime,
        host=around.host,
        owner=Owner(identity.uid, store.device_key()),
        clock=around.clock,
        settings=Settings(config.agent.settle_seconds, config.agent.init_timeout_seconds),
        secrets=SecretKeeper(Sources(folder, control.secrets), SecretCache(store)),
        stock=ImageStock(around.runtime, store, around.clock, config.images.prune_after_seconds),
        logins=LoginSource(config.registries, folder, control.secrets),
        claims=Claims(store.claims(), store.save_claims),
        pull_jitter_seconds=config.agent.pull_jitter_seconds,
        dice=around.dice,
    )


def enrol(config: Config, token: str, control: ControlPlane | None = None) -> Identity:
    """Exchange a token for a credential and keep it (DEV-1); an old credential is shown along (DEV-2).

    Raises:
        ControlError: with the server's own sentence.
    """
    store = Store(config.state_dir)
    control = control or _control_plane(config)
    request = EnrolRequest(device=config.device.id, token=token, credential=store.credential())
    reply = control.enrol(request)
    identity = Identity(reply.device, reply.uid, config.server.url)
    store.save_identity(identity, reply.credential)
    store.device_key()
    return identity


def trial_control(config: Config) -> ControlPlane:
    """The control plane as this enrolled device calls it, for a release that is tried.

    Raises:
        NotEnrolled: there is no credential to show.
    """
    store = Store(config.state_dir)
    _identity(config, store)
    return _control_plane(config, store.credential)


def _control_plane(config: Config, credential: Callable[[], str] = lambda: "") -> ControlPlane:
    server = config.server
    return ControlPlane(server.url, ca_file=server.ca_file, proxy=server.proxy, credential=credential)


def _identity(config: Config, store: Store) -> Identity:
    identity = store.identity()
    if identity is None or not store.credential():
        raise NotEnrolled(f"{config.device.id} is not enrolled yet; run: fleet-agent enroll --token-file FILE")
    if identity.device != config.device.id:
        raise NotEnrolled(
            f"this device is enrolled as {identity.device!r}, but device.id says {config.device.id!r}; "
            "correct device.id, or enrol again with: fleet-agent enroll --token-file FILE"
        )
    return identity


def _runtime(config: Config, clock: Clock) -> tuple[Runtime, Host]:
    """Imported here: a simulated device needs no Podman client, a real one no simulation."""
    if config.runtime.kind == SIMULATED:
        from agent.runtime.simulated import SimulatedHost, SimulatedRuntime  # noqa: PLC0415

        state_file = config.state_dir / "simulated.json"
        return (
            SimulatedRuntime(clock=clock, faults=config.runtime.simulated, state_file=state_file),
            SimulatedHost(),
        )
    from agent.runtime.host import LinuxHost  # noqa: PLC0415
    from agent.runtime.podman import PodmanRuntime  # noqa: PLC0415

    log_bytes = round(config.containers.log_megabytes * 1_000_000)
    return PodmanRuntime(config.runtime.socket, log_bytes=log_bytes), LinuxHost()
