"""An attempt as its journal tells it: where it stands, what has begun, what is known of boots and deadlines. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.updater.journal import Event, Mark, Record
from agent.wire.manifest import AgentUpgrade
from agent.wire.messages import AttemptState
from agent.wire.updater import SYSTEM_UPGRADE_V1

ENDED = (AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.REFUSED)
#: Steps that every executor's journal has.
ACCEPTED, REPAIR = "accepted", "repair"


@dataclass(frozen=True, slots=True)
class Attempt:
    """``records`` is never empty."""

    uid: str
    records: tuple[Record, ...]

    @property
    def last(self) -> Record:
        return self.records[-1]

    @property
    def executor(self) -> str:
        """A journal whose first line was lost belongs to the first executor there was."""
        return self.records[0].executor or SYSTEM_UPGRADE_V1

    @property
    def target(self) -> AgentUpgrade | None:
        """What an agent upgrade is to; none of another executor's, or when the first line was lost."""
        return self.records[0].target

    @property
    def state(self) -> AttemptState:
        return self.cause.state or AttemptState.ACCEPTED

    @property
    def cause(self) -> Record:
        """The record that brought it into its state."""
        return next((record for record in reversed(self.records) if record.state), self.records[0])

    @property
    def is_open(self) -> bool:
        """The updater has to do something about it."""
        return self.state in (AttemptState.ACCEPTED, AttemptState.RUNNING)

    @property
    def waits_for_root(self) -> bool:
        """Nothing goes on, and no other attempt is taken on, before ``fleet-updater repair`` (SYS-6, UPG-4)."""
        return self.state in (AttemptState.REPAIR_REQUIRED, AttemptState.ROLLBACK_FAILED)

    @property
    def has_begun(self) -> bool:
        return self.state is not AttemptState.ACCEPTED

    @property
    def is_damaged(self) -> bool:
        return any(record.mark == Mark.DAMAGED for record in self.records)

    @property
    def place(self) -> Record:
        """The last record that moved the attempt on; the first one when there is none yet."""
        return next((record for record in reversed(self.records) if record.event is not Event.NOTED), self.records[0])

    @property
    def deadline(self) -> Record:
        """The record that says until when it may begin."""
        return next((record for record in reversed(self.records) if record.deadline is not None), self.records[0])

    def began(self, step: str) -> Record | None:
        return next((record for record in self.records if (record.step, record.event) == (step, Event.BEGAN)), None)

    def notes(self, step: str, mark: Mark) -> list[Record]:
        return [record for record in self.records if (record.step, record.mark) == (step, mark)]
