"""``agentUpgradeV1``: looks through a :class:`Host`, decides with :mod:`.policy` (UPG-3, UPG-4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from agent.releases.description import place
from agent.updater.actions import Deed, Seen, Wait, Write
from agent.updater.attempt import Attempt
from agent.updater.binary import policy
from agent.updater.binary.deeds import Restore, StartAgent, StartTrial, StopAgent, Switch, Tidy
from agent.updater.binary.host import Host
from agent.updater.binary.sights import Installed, Look, Sight, View
from agent.updater.binary.steps import PREFLIGHT, RESTORE, START, STEPS, STOP, SWITCH, TRIALS, UNPACK, VERIFY
from agent.updater.journal import Mark
from agent.updater.machine import MachineError
from agent.wire.manifest import AgentUpgrade
from agent.wire.messages import AGENT_UPGRADE_CAPABILITY, OCI_ARTIFACT_V1
from agent.wire.updater import AGENT_UPGRADE_V1


class AgentUpgrades:
    """The executor. ``limits``: seconds of steps that are not those of the table."""

    name = AGENT_UPGRADE_V1
    capabilities = (AGENT_UPGRADE_CAPABILITY, OCI_ARTIFACT_V1)

    def __init__(self, host: Host, limits: Mapping[str, float] | None = None) -> None:
        self._host = host
        self._limits = {name: step.limit_seconds or 0.0 for name, step in STEPS.items()} | dict(limits or {})

    def is_available(self) -> bool:
        try:
            return self._host.can_replace()
        except MachineError:
            return False

    def decide(self, attempt: Attempt, seen: Seen) -> Write | Wait:
        """What fails while it is looked at is trouble, as a deed that failed is."""
        view = View(seen)
        while True:
            action = policy.decide(attempt, view, self._limits)
            if not isinstance(action, Look):
                return action
            try:
                view = view.having(action.sight, self._look(attempt, action.sight))
            except MachineError as error:
                view = replace(view, seen=replace(view.seen, trouble=str(error)))

    def do(self, attempt: Attempt, deed: Deed) -> None:
        host = self._host
        match deed:
            case StartTrial(trial):
                host.start(attempt.uid, trial, _target(attempt))
            case StopAgent():
                host.stop_agent()
            case Switch(to):
                host.switch(to)
            case StartAgent():
                host.start_agent()
            case Restore(to):
                host.stop_agent()
                try:
                    host.switch(to)
                finally:
                    host.start_agent()  # where the link cannot be switched, any agent is better than none
            case Tidy(previous):
                host.tidy(attempt.uid, self._kept(attempt, previous))

    def stand_by(self, attempt: Attempt) -> str:
        """Between the agent's stop and its start, and in a restore, nobody else would start one, and nobody could reach
        the device.
        """
        if attempt.place.step not in (STOP, SWITCH, START, RESTORE) or self._host.agent().is_running:
            return ""
        self._host.start_agent()
        return "The journal could not be written while no agent ran, so one was started"

    def _kept(self, attempt: Attempt, previous: str) -> list[str]:
        """After a commit the agent from before and the newest other one; after a failure what was there before (UPG-7).

        So candidates that fail, however many, never cost a release that has run.
        """
        releases = [name for name in self._host.places() if self._is_release(name)]
        if previous:
            others = [name for name in releases if name not in (previous, self._host.active())]
            return [previous, *others[:1]]
        is_new = attempt.target is not None and not attempt.notes(PREFLIGHT, Mark.KEPT)
        return [name for name in releases if not is_new or name != place(_target(attempt))]

    def _is_release(self, name: str) -> bool:
        try:
            self._host.release(name)
        except MachineError:
            return False
        return True

    def _look(self, attempt: Attempt, sight: Sight) -> object:
        host = self._host
        looks: dict[Sight, Callable[[], object]] = {
            Sight.ACTIVE: host.active,
            Sight.INSTALLED: self._installed,
            Sight.KEPT: lambda: not host.damage(place(_target(attempt))),
            Sight.VOLUMES: host.volumes,
            Sight.ARCHITECTURE: host.architecture,
            Sight.TRIAL: lambda: host.observe(attempt.uid, TRIALS[attempt.place.step]),
            Sight.VERIFIED: lambda: host.verify(attempt.uid, _target(attempt), self._limits[VERIFY]),
            Sight.UNPACKED: lambda: host.unpack(attempt.uid, _target(attempt), self._limits[UNPACK]),
            Sight.CANDIDATE: lambda: host.release(place(_target(attempt))),
            Sight.AGENT: host.agent,
        }
        return looks[sight]()

    def _installed(self) -> Installed:
        active = self._host.active()
        damage = self._host.damage(active)
        return Installed(None if damage else self._host.release(active), damage)


def _target(attempt: Attempt) -> AgentUpgrade:
    """Only asked for while there is one."""
    if attempt.target is None:
        raise MachineError("the journal does not say what the upgrade is to")
    return attempt.target
