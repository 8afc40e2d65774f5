"""What the decisions about an agent upgrade share: the case that is decided, and how a step begins and ends. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.releases.description import place
from agent.updater.actions import Seen, Wait, Write
from agent.updater.attempt import Attempt
from agent.updater.beginning import since
from agent.updater.binary.deeds import Switch
from agent.updater.binary.sights import Look, View
from agent.updater.binary.steps import RESTORE, STEPS, touches_the_agent
from agent.updater.journal import Event, Mark, Record
from agent.updater.steps import Step
from agent.wire.manifest import AgentUpgrade

MEND = "run as root the setup of an unpacked release: fleet-agent setup"
REPAIR_HINT = "run as root: fleet-updater repair"

Action = Look | Write | Wait


@dataclass(frozen=True, slots=True)
class Case:
    """An attempt whose first line is there, with what is seen, and the limits of its steps in seconds."""

    attempt: Attempt
    target: AgentUpgrade
    view: View
    limits: Mapping[str, float]

    @property
    def seen(self) -> Seen:
        return self.view.seen

    @property
    def place(self) -> Record:
        return self.attempt.place

    @property
    def candidate(self) -> str:
        """Where the candidate is unpacked."""
        return place(self.target)

    @property
    def previous(self) -> str:
        """The place of the agent that ran when the upgrade began; empty when it is not known yet."""
        return next((record.release for record in self.attempt.records if record.release), "")

    def is_over(self, step: str) -> bool:
        return since(self._start(step), self.seen) >= self.limit(step)

    def _start(self, step: str) -> Record:
        """From where the step's seconds count: its last beginning before ``stop``; else its first record in this boot,
        because the clock of another one says nothing, least of all in a container, which has its host's.
        """
        own = [each for each in self.attempt.records if (each.step, each.boot_id) == (step, self.seen.boot_id)]
        again = [each for each in own if each.event is Event.BEGAN or each.mark == Mark.AGAIN]
        if again and not touches_the_agent(step) and step != RESTORE:
            return again[-1]
        return own[0] if own else self.attempt.last

    def limit(self, step: str) -> float:
        return self.limits.get(step, STEPS[step].limit_seconds or 0.0)


def begin(step: Step, deed: Switch | None = None) -> Write:
    return Write(step.name, Event.BEGAN, step.begins, deed=deed or step.deed)


def end(step: str, message: str, *, release: str | None = None, mark: Mark = Mark.NONE) -> Write:
    return Write(step, Event.ENDED, message, mark=mark, release=release or "")
