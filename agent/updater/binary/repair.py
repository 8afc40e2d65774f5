"""Root's help for a device on which neither the candidate nor the agent before it could be started (UPG-4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent.releases.description import formats_problem, place
from agent.updater.attempt import Attempt
from agent.updater.binary.case import MEND
from agent.updater.binary.host import Host
from agent.updater.binary.steps import STEADY_SECONDS
from agent.updater.machine import MachineError

POLL_SECONDS = 1.0
#: How long a release that is tried may take until it has stayed up.
TRY_SECONDS = 60.0


class AgentRepair:
    """``say`` prints a line for root, ``sleep`` waits between two looks."""

    def __init__(self, host: Host, say: Callable[[str], None], sleep: Callable[[float], None]) -> None:
        self._host = host
        self._say = say
        self._sleep = sleep

    def run(self, attempt: Attempt) -> str:
        """The place whose agent runs now and stays up, or empty; what runs already is left alone. The candidate is none
        of them: that it stays up is not what it failed to prove.

        Raises:
            MachineError: systemd or the disk gives no answer.
        """
        found = self._found(attempt)
        if found:  # no later repair shall take it for an agent that was proven
            self._host.tidy(attempt.uid, [name for name in self._host.places() if name != _candidate(attempt)])
        return found

    def _found(self, attempt: Attempt) -> str:
        if self._stays_up() and (active := self._host.active()) != _candidate(attempt):
            return active
        for name in self._whole(attempt):
            self._say(f"tries {name}")
            if self._starts(name):
                return name
        self._say(f"no release on this device can be started; {MEND}, then run fleet-updater repair again")
        return ""

    def _whole(self, attempt: Attempt) -> Iterator[str]:
        """First the agent from before the upgrade, then the others, the newest first."""
        previous = _previous(attempt)
        for name in sorted(self._host.places(), key=lambda name: name != previous):
            unproven = "it did not prove itself" if name == _candidate(attempt) else ""
            if problem := unproven or self._host.damage(name) or self._format_problem(name, previous):
                self._say(f"{name} cannot be taken: {problem}")
            else:
                yield name

    def _format_problem(self, name: str, previous: str) -> str:
        """Of a previous release that cannot be read nothing is known, and any agent is better than none."""
        try:
            return formats_problem(self._host.release(name).formats, self._host.release(previous).formats)
        except MachineError:
            return ""

    def _starts(self, name: str) -> bool:
        try:
            self._host.stop_agent()
            self._host.switch(name)
            self._host.start_agent()
        except MachineError as error:
            self._say(str(error))
            return False
        return self._stays_up(TRY_SECONDS)

    def _stays_up(self, seconds: float = 0.0) -> bool:
        waited = 0.0
        while True:
            agent = self._host.agent()
            if agent.is_running and agent.seconds >= STEADY_SECONDS:
                return True
            if waited >= seconds:
                return False
            self._sleep(POLL_SECONDS)
            waited += POLL_SECONDS


def _previous(attempt: Attempt) -> str:
    """Where the agent from before the upgrade lies; empty when it is not known."""
    return next((record.release for record in attempt.records if record.release), "")


def _candidate(attempt: Attempt) -> str:
    """Where the candidate lies; empty when it is the agent from before, or not known."""
    found = place(attempt.target) if attempt.target else ""
    return found if found != _previous(attempt) else ""
