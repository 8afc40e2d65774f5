"""What an agent asks to begin, whichever executor it is for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.updater.attempt import Attempt
from agent.wire.manifest import AgentUpgrade
from agent.wire.updater import AGENT_UPGRADE_V1, Begin, BeginAgentUpgrade


@dataclass(frozen=True, slots=True)
class Intent:
    """``seconds`` in which it may begin; ``target`` belongs to an agent upgrade alone (SYS-7)."""

    executor: str
    seconds: int
    target: AgentUpgrade | None = None

    @classmethod
    def of(cls, request: Begin | BeginAgentUpgrade) -> Intent:
        if isinstance(request, BeginAgentUpgrade):
            return cls(AGENT_UPGRADE_V1, request.remaining_seconds, request.target)
        return cls(request.executor, request.remaining_seconds)

    def contradicts(self, attempt: Attempt) -> bool:
        """Whether the attempt of that name is about something else; one whose first line was lost is about anything."""
        return not attempt.is_damaged and (self.executor, self.target) != (attempt.executor, attempt.target)

    def __str__(self) -> str:
        return f"{self.executor} to {self.target.version}" if self.target else self.executor
