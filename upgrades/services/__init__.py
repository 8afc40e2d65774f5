"""Every write to attempts, their journals, and the agents that devices shall run."""

from upgrades.services.agents import (
    AgentsSet,
    agent_upgrade_give_up,
    agent_upgrade_retry,
    agent_upgrade_set,
    agent_upgrades_set,
    device_apply,
)
from upgrades.services.giving_up import attempt_give_up
from upgrades.services.letting_be import agents_let_be
from upgrades.services.offering import (
    Offer,
    attempts_offer,
    attempts_offer_each,
    attempts_tidy,
    attempts_withdraw,
)
from upgrades.services.reports import reports_drain
from upgrades.services.standing import agents_evaluate

__all__ = [
    "AgentsSet",
    "Offer",
    "agent_upgrade_give_up",
    "agent_upgrade_retry",
    "agent_upgrade_set",
    "agent_upgrades_set",
    "agents_evaluate",
    "agents_let_be",
    "attempt_give_up",
    "attempts_offer",
    "attempts_offer_each",
    "attempts_tidy",
    "attempts_withdraw",
    "device_apply",
    "reports_drain",
]
