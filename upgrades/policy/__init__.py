"""What follows from what is known: of one attempt, and of the agent that a device shall run. Pure."""

from upgrades.policy.agents import REPAIR, Case, Known, Verdict, architecture_problem, lack, verdict
from upgrades.policy.attempts import (
    BROKEN_OFF,
    DONE,
    NEEDS_ROOT,
    SEQUENCES,
    STEP_FAILED,
    UNDER_WAY,
    Passage,
    has_begun,
    has_ended,
    may_be_given_up,
    passages,
    state_after,
)

__all__ = [
    "BROKEN_OFF",
    "DONE",
    "NEEDS_ROOT",
    "REPAIR",
    "SEQUENCES",
    "STEP_FAILED",
    "UNDER_WAY",
    "Case",
    "Known",
    "Passage",
    "Verdict",
    "architecture_problem",
    "has_begun",
    "has_ended",
    "lack",
    "may_be_given_up",
    "passages",
    "state_after",
    "verdict",
]
